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

    data_out[i] = data_in[(i * GATHER_STRIDE + offset) & (size - 1u)] ^ (i * GATHER_SALT);
}
