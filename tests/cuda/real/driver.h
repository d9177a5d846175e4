/* SPDX-License-Identifier: MIT */
/* The part that the programs of CUDA's driver interface here have in common. */
#include <cuda.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES 200
#define COUNT    1000
#define SIDE     33
#define BYTES    5000

static void check(const char *what, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", what, (int)result);
    exit(1);
}
#define CHECK(call) check(#call, call)

static void expect(const char *what, int is_right)
{
    if (is_right)
        return;
    printf("%s is wrong\n", what);
    exit(1);
}

static CUmodule module;
static CUstream stream;

static void launch(const char *name, unsigned int blocks, unsigned int rows, unsigned int threads,
                   unsigned int thread_rows, void **parameters)
{
    CUfunction function;

    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuLaunchKernel(function, blocks, rows, 1, threads, thread_rows, 1, 0, stream, parameters,
                         NULL));
}

static CUdeviceptr give(const void *from, size_t bytes)
{
    CUdeviceptr at;

    CHECK(cuMemAlloc(&at, bytes));
    if (from)
        CHECK(cuMemcpyHtoDAsync(at, from, bytes, stream));
    else
        CHECK(cuMemsetD8Async(at, 0, bytes, stream));
    return at;
}

static void take(void *to, CUdeviceptr at, size_t bytes)
{
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(to, at, bytes));
    CHECK(cuMemFree(at));
}

static float x[COUNT], y[COUNT], z[COUNT];

static void check_add(void)
{
    CUdeviceptr from = give(x, sizeof(x)), other = give(y, sizeof(y)), to = give(NULL, sizeof(z));
    int n = COUNT;

    for (int i = 0; i < LAUNCHES; i++)
        launch("add", 4, 1, 256, 1, (void *[]){&to, &from, &other, &n});
    take(z, to, sizeof(z));
    for (int i = 0; i < COUNT; i++)
        expect("the sum", z[i] == x[i] + y[i]);
    CHECK(cuMemFree(from));
    CHECK(cuMemFree(other));
}

static void check_reduce(void)
{
    CUdeviceptr from = give(x, sizeof(x)), to = give(NULL, sizeof(float));
    float sum = 0, wanted = 0;
    int n = COUNT;

    launch("reduce", 3, 1, 256, 1, (void *[]){&from, &to, &n});
    take(&sum, to, sizeof(sum));
    for (int i = 0; i < COUNT; i++)
        wanted += x[i];
    expect("the reduction", sum == wanted);
    CHECK(cuMemFree(from));
}

static void check_multiply(void)
{
    static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    CUdeviceptr left, right, to;
    int n = SIDE;

    for (int i = 0; i < SIDE * SIDE; i++) {
        a[i] = (float)(i * 7 % 11 - 5);
        b[i] = (float)(i * 5 % 13 - 6);
    }
    left = give(a, sizeof(a));
    right = give(b, sizeof(b));
    to = give(NULL, sizeof(c));
    launch("multiply", 3, 3, 16, 16, (void *[]){&left, &right, &to, &n});
    take(c, to, sizeof(c));
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            float sum = 0;

            for (int i = 0; i < SIDE; i++)
                sum += a[row * SIDE + i] * b[i * SIDE + column];
            expect("the product", c[row * SIDE + column] == sum);
        }
    CHECK(cuMemFree(left));
    CHECK(cuMemFree(right));
}

static void check_histogram(void)
{
    static unsigned char bytes[BYTES];
    unsigned int bins[256], wanted[256] = {0};
    CUdeviceptr from, to;
    int n = BYTES;

    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i * i % 251);
        wanted[bytes[i]]++;
    }
    from = give(bytes, sizeof(bytes));
    to = give(NULL, sizeof(bins));
    launch("histogram", 4, 1, 256, 1, (void *[]){&from, &to, &n});
    take(bins, to, sizeof(bins));
    expect("the histogram", !memcmp(bins, wanted, sizeof(bins)));
    CHECK(cuMemFree(from));
}

static void check_shuffle(void)
{
    int values[32], sum = 0, wanted = 0;
    CUdeviceptr from, to;

    for (int i = 0; i < 32; i++)
        wanted += values[i] = i * i - 100;
    from = give(values, sizeof(values));
    to = give(NULL, sizeof(sum));
    launch("shuffle", 1, 1, 32, 1, (void *[]){&from, &to});
    take(&sum, to, sizeof(sum));
    expect("the shuffle", sum == wanted);
    CHECK(cuMemFree(from));
}

static int is_near(double value, double wanted, double error)
{
    return fabs(value - wanted) <= error * fabs(wanted);
}

static void check_math(void)
{
    static double out[8 * COUNT];
    CUdeviceptr from = give(x, sizeof(x)), to = give(NULL, sizeof(out));
    int n = COUNT;

    launch("math", 4, 1, 256, 1, (void *[]){&from, &to, &n});
    take(out, to, sizeof(out));
    for (int i = 0; i < COUNT; i++) {
        const double *of = &out[8 * i], v = x[i];

        expect("the root", of[0] == sqrtf(x[i]));
        expect("the exponential", is_near(of[1], exp(v), 1e-6));
        expect("the reciprocal root", is_near(of[2], 1 / sqrt(v), 1e-6));
        expect("the sine", fabs(of[3] - sin(v * 1e6)) < 1e-9);
        expect("the quotient", of[4] == 1 / v);
        expect("logarithm and tangent", fabs(of[5] - log(v) - tanh(v)) < 1e-5);
        expect("the power", is_near(of[6], v * v * v * v * v, 1e-12));
        expect("integers", of[7] == i % 7 + (long long)i * i / 3);
    }
    CHECK(cuMemFree(from));
}

/* Loads @image, checks what its kernels compute, and prints how much memory there is, in MiB. */
static inline void use(const void *image)
{
    size_t free_bytes, total;
    CUcontext context;
    CUdevice device;
    CUdeviceptr at;

    for (int i = 0; i < COUNT; i++) {
        x[i] = 0.25f + (float)(i % 64) * 0.5f;
        y[i] = (float)(i * 3);
    }
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    check_add();
    check_reduce();
    check_multiply();
    check_histogram();
    check_shuffle();
    check_math();
    CHECK(cuMemGetInfo(&free_bytes, &total));
    expect("the limit", cuMemAlloc(&at, total + (1 << 20)) == CUDA_ERROR_OUT_OF_MEMORY);
    printf("%zu\n", total >> 20);
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
}
