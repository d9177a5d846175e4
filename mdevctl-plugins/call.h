/* SPDX-License-Identifier: MIT */
/*
 * How mdevctl calls: "-t TYPE -e EVENT -a ACTION -s STATE -u UUID -p PARENT", and JSON on standard
 * input with some events (mdevctl(8), "INVOKING EXTERNAL SCRIPTS").
 */
#ifndef MDEVCTL_PLUGINS_CALL_H
#define MDEVCTL_PLUGINS_CALL_H

#include <glib.h>

/**
 * Call - as in the arguments, which live longer
 * @parent: the GPU: a PCI address, or the name of a GPU without hardware
 * @root: what stands for /, as mdevctl has it from MDEVCTL_ENV_ROOT; "": / itself
 */
typedef struct {
    const char *type;
    const char *event;
    const char *action;
    const char *uuid;
    const char *parent;
    const char *root;
} Call;

/* FALSE where an option is missing or not known. */
gboolean call_parse(int argc, char **argv, Call *call);

gboolean call_is(const Call *call, const char *event, const char *action);

/* All of standard input; NULL where there is more than a megabyte, or it can't be read. To be
 * freed. */
char *call_input(void);

#endif
