// SPDX-License-Identifier: MIT
/*
 * A program of NVIDIA's runtime, as nvcc makes it by default. On a fake card the runtime finds that
 * the driver is not NVIDIA's; it must say so, and not crash. Prints the error's number.
 */
#include <stdio.h>

__global__ void add(float *z, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        z[i] = x[i] + y[i];
}

int main()
{
    float *memory;
    cudaError_t error = cudaMalloc((void **)&memory, 3 << 20);

    if (error == cudaSuccess) {
        add<<<1024, 256>>>(memory, memory + (1 << 18), memory + (2 << 18), 1 << 18);
        error = cudaDeviceSynchronize();
    }
    printf("%d\n", (int)error);
    return 0;
}
