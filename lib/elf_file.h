/* SPDX-License-Identifier: MIT */
/* What a shared library says of itself: its name, and the functions that others can call. */
#ifndef LIB_ELF_FILE_H
#define LIB_ELF_FILE_H

#include <glib.h>

#include "lib/host_root.h"

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

#endif
