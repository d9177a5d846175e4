/* SPDX-License-Identifier: MIT */
/* Checks a host as an expert would, and reports each fault with advice. Changes nothing. */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <glib.h>

#include "lib/host_root.h"

typedef enum {
    FINDING_OK,
    FINDING_INFO,    /* this host cannot do it and was not set up for it */
    FINDING_WARNING, /* something will not work, or not well */
    FINDING_PROBLEM, /* vGPUs do not work */
} Severity;

/**
 * Finding
 * @subject: what was checked, in a word or two
 * @text: the result, a sentence without its full stop
 * @advice: what to do; NULL: nothing
 */
typedef struct {
    Severity severity;
    const char *subject;
    char *text;
    char *advice;
} Finding;

/* Of Finding; programs are found by PATH. */
GPtrArray *doctor_examine(HostRoot *root);

/*
 * The arbiter of @gpu does not answer within 2 s. FALSE also if there is none, or if the caller may
 * not ask it.
 */
gboolean doctor_arbiter_hangs(HostRoot *root, const char *gpu);

/* "ok", "info", "warning", "problem" */
const char *severity_name(Severity severity);

#endif
