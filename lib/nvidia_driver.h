/* SPDX-License-Identifier: MIT */
/* NVIDIA's driver and its libraries, read from their files. */
#ifndef LIB_NVIDIA_DRIVER_H
#define LIB_NVIDIA_DRIVER_H

#include <glib.h>

#include "lib/host_root.h"

/* What a shared library says of itself: its name, and the functions that others can call. */

typedef struct ElfFile ElfFile;

/*
 * NULL, with G_FILE_ERROR: it cannot be read, or is no library for this machine's 64-bit programs.
 */
ElfFile *elf_file_open(HostRoot *root, const char *path, GError **error);

void elf_file_free(ElfFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ElfFile, elf_file_free)

/* By which programs need it (SONAME). Of the file; NULL: it has none. */
const char *elf_file_soname(const ElfFile *file);

/* Names that it defines for others, without versions: a set of the file's texts. */
GHashTable *elf_file_exports(const ElfFile *file);

/*
 * The user part of NVIDIA's driver on this host: its shared libraries, all of the kernel module's
 * own version, and EGL's platforms (GBM, Wayland, X11).
 */

#define NVIDIA_CUDA "libcuda.so.1"
#define NVIDIA_ML   "libnvidia-ml.so.1"
/* Begin of their names. */
#define NVIDIA_EGL_PLATFORM "libnvidia-egl-"

/**
 * NvidiaLibrary
 * @path: of the file, on the host
 * @soname: by which programs need it
 */
typedef struct {
    char *path;
    char *soname;
} NvidiaLibrary;

/**
 * NvidiaDriver
 * @version: as "580.65.06"
 * @libraries: of NvidiaLibrary, by soname; NVIDIA_CUDA and NVIDIA_ML are among them
 */
typedef struct {
    char *version;
    GPtrArray *libraries;
} NvidiaDriver;

/* NULL: the module is not loaded, or libcuda or NVML of its version is not installed. */
NvidiaDriver *nvidia_driver_find(HostRoot *root);

void nvidia_driver_free(NvidiaDriver *driver);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NvidiaDriver, nvidia_driver_free)

/* NULL: it is not there. */
const NvidiaLibrary *nvidia_driver_library(const NvidiaDriver *driver, const char *soname);

#endif
