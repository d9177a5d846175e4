// SPDX-License-Identifier: MIT
/* What the programs here launch. */
extern "C" __global__ void add(float *z, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        z[i] = x[i] + y[i];
}
