/* SPDX-License-Identifier: MIT */
/*
 * The table of a library's entry points, as gen-stubs makes it from entry_points.def.
 *
 * A slot for each entry holds the address of the driver's function. At first it leads to code that
 * looks the function up (real.h), as a procedure linkage table does; so nothing has to run when the
 * library is loaded.
 */
#ifndef GOVERNOR_CUDA_ENTRY_POINTS_H
#define GOVERNOR_CUDA_ENTRY_POINTS_H

#include <stdatomic.h>
#include <stdint.h>

enum entry_kind { ENTRY_WRAP, ENTRY_PASS, ENTRY_LEAVE };

/* What a call does. */
enum entry_class {
    CLASS_NONE,
    CLASS_LAUNCH,     /* makes the GPU compute */
    CLASS_COPY,       /* copies */
    CLASS_SET,        /* fills */
    CLASS_MANAGED,    /* moves or unpacks memory */
    CLASS_MEMOP,      /* makes a stream wait or signal */
    CLASS_ALLOC,      /* takes memory */
    CLASS_IMPORT,     /* takes memory that another made */
    CLASS_EXPORT,     /* offers memory to others */
    CLASS_FREE,       /* gives memory back */
    CLASS_CONTEXT,    /* the driver takes or gives back memory of its own */
    CLASS_CODE,       /* loads code and variables of a program, or drops them */
    CLASS_GRAPH,      /* builds what a launch does later */
    CLASS_CAPTURE,    /* records calls in place of doing them */
    CLASS_LIFE,       /* makes or ends streams */
    CLASS_SYNC,       /* waits for the GPU */
    CLASS_VIEW,       /* says how much memory there is */
    CLASS_GETPROC,    /* hands out entry points */
    CLASS_INTEROP,    /* other libraries' handles */
    CLASS_CHECKPOINT, /* suspends processes */
    CLASS_DEBUG,      /* for debuggers */
};

struct entry_point {
    const char *name;
    const char *base;
    int since;
    uint8_t class;
    uint8_t kind;
};

extern const struct entry_point entry_points[];
extern const unsigned int entry_points_count;
/* In the order of entry_points. */
extern void *_Atomic entry_slots[];
/* Our function for each wrapped entry; NULL for the others. */
extern void *const entry_wrappers[];

#endif
