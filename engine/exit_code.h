/* SPDX-License-Identifier: MIT */
/* Exit codes of vgpu-engine, as listed in the man page; also the codes of ENGINE_ERROR. */
#ifndef ENGINE_EXIT_CODE_H
#define ENGINE_EXIT_CODE_H

#include <glib.h>

enum exit_code {
    EXIT_CODE_OK = 0,       /* told to stop, or the vGPU was removed */
    EXIT_CODE_INTERNAL = 1, /* internal error; systemd tries again */
    EXIT_CODE_USAGE = 2,    /* wrong options or no device passed */
    EXIT_CODE_DEVICE = 3,   /* the driver refused or has another version */
    EXIT_CODE_GPU = 4,      /* the vGPU's own GPU cannot be used; systemd tries again */
    EXIT_CODE_RENDERER = 5, /* virglrenderer does not start, or has died */
    EXIT_CODE_SANDBOX = 6,  /* the sandbox cannot be built */
    EXIT_CODE_LOST = 7,     /* the driver gave this engine up; systemd starts the next */
    EXIT_CODE_NODE = 8,     /* a device node of the GPU is still missing; systemd tries again */
    EXIT_CODE_CLOSED = 9,   /* the VM has ended; systemd starts an engine for the next one */
};

#define ENGINE_ERROR (engine_error_quark())
GQuark engine_error_quark(void);

#endif /* ENGINE_EXIT_CODE_H */
