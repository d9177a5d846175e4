/* SPDX-License-Identifier: MIT */
/*
 * mdevctl's call: "-t TYPE -e EVENT -a ACTION -s STATE -u UUID -p PARENT", and JSON on standard
 * input with some events (mdevctl(8), "INVOKING EXTERNAL SCRIPTS").
 */
#ifndef MDEVCTL_PLUGINS_CALL_H
#define MDEVCTL_PLUGINS_CALL_H

#include <glib.h>

#include "lib/host_root.h"

/**
 * Call - as in the arguments, which live longer
 * @parent: the GPU: a PCI address, or the name of a GPU without hardware
 * @root: of mdevctl's MDEVCTL_ENV_ROOT, once main() has made it
 */
typedef struct {
    const char *type;
    const char *event;
    const char *action;
    const char *uuid;
    const char *parent;
    HostRoot *root;
} Call;

/* FALSE if an option is missing or unknown. */
gboolean call_parse(int argc, char **argv, Call *call);

gboolean call_is(const Call *call, const char *event, const char *action);

/* All of standard input; NULL if it is longer than a megabyte, or cannot be read. To be freed. */
char *call_input(void);

#endif
