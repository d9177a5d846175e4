/* SPDX-License-Identifier: MIT */
/*
 * The one error domain of vgpu-registrar. Its codes are the program's exit codes, as the man page
 * lists them.
 */
#ifndef REGISTRAR_ERROR_H
#define REGISTRAR_ERROR_H

#include <glib.h>

#define REGISTRAR_ERROR registrar_error_quark()
GQuark registrar_error_quark(void);

typedef enum {
    REGISTRAR_ERROR_REFUSED = 1,    /* the driver, the GPU or the system said no */
    REGISTRAR_ERROR_USAGE = 2,      /* the command line */
    REGISTRAR_ERROR_NOT_SHARED = 3, /* gpus.conf does not share this GPU: nothing done */
    REGISTRAR_ERROR_CONFIG = 4,     /* a file is broken: nothing done */
    REGISTRAR_ERROR_NO_DRIVER = 5,  /* mdev_vgpu is not loaded */
    REGISTRAR_ERROR_ABSENT = 6,     /* no such GPU, or no driver is bound to it yet */
} RegistrarError;

#endif
