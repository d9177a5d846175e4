/* SPDX-License-Identifier: MIT */
/* Numbers of the kernels, for C, GLSL and OpenCL C alike: nothing but #define. */
#define MADD_MUL      1664525u
#define MADD_ADD      1013904223u
#define GATHER_STRIDE 2654435761u
#define GATHER_SALT   2246822519u
#define GROUP_SIZE    64
