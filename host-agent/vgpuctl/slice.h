/* SPDX-License-Identifier: MIT */
/* Slices from vgpud, for all commands that look at them or make them. */
#ifndef VGPUCTL_SLICE_H
#define VGPUCTL_SLICE_H

#include <gio/gio.h>

#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/listing.h"

/* Of a vGPU, made for a VM or for a container. */
extern const char *const vgpu_doors[];
extern const Listing vgpu_listing;

/* FindSlices: aa{sv}. @doors, @keys: NULL: all. */
GVariant *slices_get(const Client *client, const char *const *doors, const char *const *keys,
                     GError **error);

/* CreateSlices with one @request, of a{sv}, consumed: aa{sv}. @doing: for the progress line. */
GVariant *slices_create(const Client *client, GVariant *request, const char *doing, GError **error);

/* Lists slices as the options of the command line say. @doors: as above. */
gboolean slices_list(const Client *client, const Options *options, const char *const *doors,
                     const Listing *shown, GError **error);

/*
 * Makes slices as the options say, of type @args[0], and prints them as @shown. @door: where --door
 * is not given.
 */
gboolean slices_make(const Client *client, const Options *options, char **args, const char *door,
                     const Listing *shown, GError **error);

/* Nobody counts what these use: says so, once; a document says it itself. @list: of FindSlices. */
void warn_of_meter(const Options *options, GVariant *list);

#endif
