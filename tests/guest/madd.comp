// SPDX-License-Identifier: MIT
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"

layout(local_size_x = GROUP_SIZE) in;
layout(push_constant) uniform Params { uint size; uint iterations; uint offset; };
layout(set = 0, binding = 0) readonly buffer In { uint data_in[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint data_out[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    uint x = data_in[i];

    for (uint n = 0u; n < iterations; n++)
        x = x * MADD_MUL + MADD_ADD;
    data_out[i] = x;
}
