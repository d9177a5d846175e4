/* SPDX-License-Identifier: MIT */
/* The driver's control device for the tests of vgpud: without a hook every call is ENOTTY. */
#ifndef TESTS_UNIT_CONTROL_CALL_H
#define TESTS_UNIT_CONTROL_CALL_H

/* 0, or -1 with errno. */
typedef int ControlCall(unsigned long request, void *argument);

extern ControlCall *control_call_hook;

#endif
