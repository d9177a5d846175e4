/* SPDX-License-Identifier: MIT */
/*
 * The options of a command as a dictionary for vgpud. Options that are not given are not in it.
 */
#ifndef VGPUCTL_CALL_DICT_H
#define VGPUCTL_CALL_DICT_H

#include <glib.h>

/* @value: NULL: not given. */
void call_dict_add_text(GVariantDict *dict, const char *key, const char *value);

/* @list: NULL: not given. */
void call_dict_add_list(GVariantDict *dict, const char *key, char **list);

/* @value: below 0: not given. */
void call_dict_add_number(GVariantDict *dict, const char *key, int value);

/* Nothing if it is FALSE. */
void call_dict_add_flag(GVariantDict *dict, const char *key, gboolean value);

/* "off" or "0", "on" or "1"; NULL: not given. VGPUCTL_USAGE names @option. */
gboolean call_dict_add_switch(GVariantDict *dict, const char *key, const char *option,
                              const char *text, GError **error);

/* A size as "512M"; NULL: not given; "0" if @zero allows it. VGPUCTL_USAGE names @option. */
gboolean call_dict_add_size(GVariantDict *dict, const char *key, const char *option,
                            const char *text, gboolean zero, GError **error);

#endif
