// SPDX-License-Identifier: MIT
#version 450

layout(local_size_x = 64) in;
layout(push_constant) uniform Params { uint iterations; };
layout(set = 0, binding = 0) buffer Data { float data[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    float x = data[i];

    for (uint n = 0u; n < iterations; n++)
        x = x * 0.999 + 0.001;
    data[i] = x;
}
