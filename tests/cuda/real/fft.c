// SPDX-License-Identifier: MIT
/* Transforms of several lengths by cuFFT, against sums; prints how much memory there is, in MiB. */
#include <complex.h>
#include <cuda.h>
#include <cufft.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 4

static void check(const char *what, int result)
{
    if (!result)
        return;
    printf("%s: %d\n", what, result);
    exit(1);
}
#define CHECK(call) check(#call, (int)(call))

static double complex element(const float complex *x, int n, int k)
{
    double complex sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i] * cexp(-2 * M_PI * I * (double)((long)i * k % n) / n);
    return sum;
}

/* Every element of some is compared. */
static void transform(int n)
{
    size_t bytes = sizeof(float complex) * (size_t)n * BATCH;
    float complex *x = malloc(bytes), *y = malloc(bytes);
    CUdeviceptr from, to;
    cufftHandle plan;

    for (int i = 0; i < n * BATCH; i++)
        x[i] = (float)(i * 37 % 101) / 101 - 0.5f + I * ((float)(i * 53 % 97) / 97 - 0.5f);
    CHECK(cuMemAlloc(&from, bytes));
    CHECK(cuMemAlloc(&to, bytes));
    CHECK(cuMemcpyHtoD(from, x, bytes));
    CHECK(cufftPlan1d(&plan, n, CUFFT_C2C, BATCH));
    CHECK(cufftExecC2C(plan, (cufftComplex *)from, (cufftComplex *)to, CUFFT_FORWARD));
    CHECK(cuMemcpyDtoH(y, to, bytes));
    for (int of = 0; of < BATCH; of++)
        for (int k = of; k < n; k += n / 16 + 1) {
            double error = cabs(element(x + of * n, n, k) - y[of * n + k]);

            if (error < 1e-5 * sqrt(n) * 10)
                continue;
            printf("transform of %d, element %d: off by %g\n", n, k, error);
            exit(1);
        }
    CHECK(cufftDestroy(plan));
    CHECK(cuMemFree(from));
    CHECK(cuMemFree(to));
    free(x);
    free(y);
}

int main(void)
{
    static const int lengths[] = {8, 37, 1000, 1024, 4096};
    size_t free_bytes, total;
    CUcontext context;
    CUdevice device;
    CUdeviceptr at;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        transform(lengths[i]);
    CHECK(cuMemGetInfo(&free_bytes, &total));
    if (cuMemAlloc(&at, total + (1 << 20)) != CUDA_ERROR_OUT_OF_MEMORY)
        check("the limit", 1);
    printf("%zu\n", total >> 20);
    return 0;
}
