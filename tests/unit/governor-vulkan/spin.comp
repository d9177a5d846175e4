// SPDX-License-Identifier: MIT
// Fixed work whose result can be checked: each invocation runs a generator of numbers for some rounds.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Numbers { uint numbers[]; };
layout(push_constant) uniform Parameters { uint rounds; };

void main()
{
    uint number = gl_GlobalInvocationID.x;
    for (uint i = 0; i < rounds; i++)
        number = number * 1664525u + 1013904223u;
    numbers[gl_GlobalInvocationID.x] += number;
}
