// SPDX-License-Identifier: MIT
/* What the programs here launch; nvcc and NVRTC compile it. */
#define TILE 16

extern "C" __global__ void add(float *z, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        z[i] = x[i] + y[i];
}

/* In blocks of 256. */
extern "C" __global__ void reduce(const float *x, float *sum, int n)
{
    __shared__ float shared[256];
    float own = 0;

    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        own += x[i];
    shared[threadIdx.x] = own;
    __syncthreads();
    for (int step = 128; step; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    if (!threadIdx.x)
        atomicAdd(sum, shared[0]);
}

/* c = a b, of n x n, in blocks of TILE x TILE. */
extern "C" __global__ void multiply(const float *a, const float *b, float *c, int n)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;

    for (int from = 0; from < n; from += TILE) {
        int x = from + threadIdx.x, y = from + threadIdx.y;

        left[threadIdx.y][threadIdx.x] = row < n && x < n ? a[row * n + x] : 0;
        right[threadIdx.y][threadIdx.x] = column < n && y < n ? b[y * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}

/* Of bytes, in blocks of 256. */
extern "C" __global__ void histogram(const unsigned char *bytes, unsigned int *bins, int n)
{
    __shared__ unsigned int own[256];

    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&own[bytes[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

/* The sum of a warp. */
extern "C" __global__ void shuffle(const int *x, int *sum)
{
    int value = x[threadIdx.x];

    for (int step = 16; step; step /= 2)
        value += __shfl_down_sync(0xffffffffu, value, step);
    if (!threadIdx.x)
        *sum = value;
}

__device__ __noinline__ double power(double x, int n)
{
    return n ? x * power(x, n - 1) : 1;
}

/* Eight functions of each number. */
extern "C" __global__ void math(const float *x, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    out[8 * i] = sqrtf(x[i]);
    out[8 * i + 1] = expf(x[i]);
    out[8 * i + 2] = rsqrtf(x[i]);
    out[8 * i + 3] = sin(x[i] * 1e6);
    out[8 * i + 4] = 1.0 / x[i];
    out[8 * i + 5] = logf(x[i]) + tanhf(x[i]);
    out[8 * i + 6] = power(x[i], 5);
    out[8 * i + 7] = i % 7 + (long long)i * i / 3;
}
