/* SPDX-License-Identifier: MIT */
/* Shared libraries without code, for what reads their names. */
#ifndef TESTS_UNIT_ELF_KIT_H
#define TESTS_UNIT_ELF_KIT_H

#include <glib.h>

#include "lib/host_root.h"

/*
 * Writes a library of this machine with that SONAME (NULL: none) and these functions, separated by
 * blanks. One that begins with "-" is needed, and not defined.
 */
void elf_kit_write(HostRoot *root, const char *path, const char *soname, const char *functions);

/* Its bytes. */
GByteArray *elf_kit_bytes(const char *soname, const char *functions);

#endif
