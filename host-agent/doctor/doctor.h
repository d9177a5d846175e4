/* SPDX-License-Identifier: MIT */
/*
 * Looks a host over as an expert would, and says what is amiss and what to do about it. Changes
 * nothing.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <glib.h>

typedef enum {
    FINDING_OK,
    FINDING_INFO,    /* what this host can't do and was not set up to do */
    FINDING_WARNING, /* something will not work, or not well */
    FINDING_PROBLEM, /* vGPUs do not work */
} Severity;

/**
 * Finding
 * @subject: what was looked at, in a word or two
 * @text: what was seen, a sentence without its full stop
 * @advice: what to do; NULL where nothing is to be done
 */
typedef struct {
    Severity severity;
    const char *subject;
    char *text;
    char *advice;
} Finding;

/* @root: "" in production, else a directory that stands for /. Of Finding; programs are found by
 * PATH. */
GPtrArray *doctor_examine(const char *root);

/* "ok", "info", "warning", "problem" */
const char *severity_name(Severity severity);

#endif
