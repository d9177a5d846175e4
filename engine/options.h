/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The engine's, the guard's, and those of both. */
struct options {
    char *describe; /* GPU to describe; NULL: serve a vGPU */
    char *device;   /* NULL: @fd */
    int fd;         /* -1: @device */

    char *config;
    char *gpu;    /* NULL: @config has it */
    char *socket; /* NULL: systemd's */
    char *cuda_socket;
    char *cuda_worker; /* NULL: as installed */

    char *icd; /* NULL: find out */
    char *sysroot;
    GStrv environment;
    char *shader_cache; /* NULL: none */
    bool no_landlock;
    bool show_version;
};

/* False with @error set if the command line is wrong. --help ends the process. */
bool options_parse(struct options *options, int argc, char **argv, GError **error);
bool options_parse_guard(struct options *options, int argc, char **argv, GError **error);

void options_clear(struct options *options);

#endif /* ENGINE_OPTIONS_H */
