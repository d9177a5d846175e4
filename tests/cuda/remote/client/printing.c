// SPDX-License-Identifier: MIT
/* A kernel that prints: its text comes between what the program prints before and after it waits.
 */
#include "client.h"

#include <stdio.h>

static const char printing_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 printed) vprintf (.param .b64 text, .param .b64 values);\n"
    ".global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};\n"
    ".visible .entry say() { .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    " { .param .b64 p0; .param .b64 p1; .param .b32 r0;\n"
    " mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;\n"
    " st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;\n"
    " call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r1, [r0]; } ret; }\n";

void print_in_kernel(void)
{
    CUfunction say;
    CUmodule module;

    begin_context();
    ok(cuModuleLoadData(&module, printing_ptx));
    ok(cuModuleGetFunction(&say, module, "say"));
    printf("before\n");
    ok(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    printf("between\n");
    for (unsigned int i = 0; i < 3; i++)
        ok(cuLaunchKernel(say, 1, 1, 1, 1000, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    printf("after\n");
}

static const char failing_ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func __assertfail (.param .b64 text, .param .b64 file, .param .b32 line,\n"
    " .param .b64 function, .param .b64 width);\n"
    ".global .align 1 .b8 text[6] = {102, 97, 108, 115, 101, 0};\n"
    ".visible .entry fail() { .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
    " { .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
    " mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 1; mov.u32 %r1, 7;\n"
    " st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd1; st.param.b32 [p2], %r1;\n"
    " st.param.b64 [p3], %rd1; st.param.b64 [p4], %rd2;\n"
    " call.uni __assertfail, (p0, p1, p2, p3, p4); } ret; }\n";

/* The error of the kernel is that of all calls from then on. */
void fail_in_kernel(void)
{
    CUfunction fail;
    CUmodule module;

    begin_context();
    ok(cuModuleLoadData(&module, failing_ptx));
    ok(cuModuleGetFunction(&fail, module, "fail"));
    ok(cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    is(cuCtxSynchronize(), 710);
    is(cuCtxSynchronize(), 710);
}

/* What goes to a pipe is written by the last step of exit(), after all libraries' own. */
void print_at_end(void)
{
    ok(cuInit(0));
    printf("ended\n");
}
