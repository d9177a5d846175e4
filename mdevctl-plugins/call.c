/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/call.h"

#include <unistd.h>

#include "lib/input.h"

#define INPUT_MAX (1u << 20)

gboolean call_parse(int argc, char **argv, Call *call)
{
    const char *state = NULL;
    int option;

    *call = (Call){0};
    while ((option = getopt(argc, argv, "t:e:a:s:u:p:")) != -1) {
        const char **value = option == 't'   ? &call->type
                             : option == 'e' ? &call->event
                             : option == 'a' ? &call->action
                             : option == 's' ? &state
                             : option == 'u' ? &call->uuid
                             : option == 'p' ? &call->parent
                                             : NULL;

        if (!value)
            return FALSE;
        *value = optarg;
    }
    return optind == argc && call->type && call->event && call->action && call->uuid &&
           call->parent;
}

gboolean call_is(const Call *call, const char *event, const char *action)
{
    return g_str_equal(call->event, event) && g_str_equal(call->action, action);
}

char *call_input(void)
{
    GString *text = input_read(INPUT_MAX, NULL);

    return text ? g_string_free(text, FALSE) : NULL;
}
