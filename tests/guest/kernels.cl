// SPDX-License-Identifier: MIT
// The same two kernels as madd.comp and gather.comp; the constants come from constants.h.

kernel void madd(global const uint *data_in, global uint *data_out, uint size, uint iterations,
                 uint offset)
{
    uint i = get_global_id(0);
    uint x = data_in[i];

    for (uint n = 0; n < iterations; n++)
        x = x * MADD_MUL + MADD_ADD;
    data_out[i] = x;
}

kernel void gather(global const uint *data_in, global uint *data_out, uint size, uint iterations,
                   uint offset)
{
    uint i = get_global_id(0);

    data_out[i] = data_in[(i * GATHER_STRIDE + offset) & (size - 1)] ^ (i * GATHER_SALT);
}
