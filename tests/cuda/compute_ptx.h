/* SPDX-License-Identifier: MIT */
/* Kernels for tests: z = x * a + scale for the first n; one more at an address; one without an end.
 */
#ifndef TESTS_CUDA_COMPUTE_PTX_H
#define TESTS_CUDA_COMPUTE_PTX_H

static const char compute_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 scale = 3;\n"
    ".visible .entry axpy(.param .u64 z, .param .u64 x, .param .u32 n, .param .f32 a) {\n"
    " .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"
    " ld.param.u64 %rd1, [z]; ld.param.u64 %rd2, [x]; ld.param.u32 %r1, [n];\n"
    " ld.param.f32 %f1, [a]; ld.global.u32 %r5, [scale]; cvt.rn.f32.u32 %f4, %r5;\n"
    " mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    " mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %p1, %r2, %r1; @%p1 ret;\n"
    " mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n"
    " ld.global.f32 %f2, [%rd2]; fma.rn.f32 %f3, %f2, %f1, %f4; st.global.f32 [%rd1], %f3; ret; }\n"
    ".visible .entry count(.param .u64 at) { .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
    " ld.param.u64 %rd1, [at]; ld.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.u32 [%rd1], %r1; ret; "
    "}\n"
    ".visible .entry forever() { $L: bra $L; }\n";

#endif
