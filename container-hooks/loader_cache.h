/* SPDX-License-Identifier: MIT */
/* Where an image's dynamic linker finds libraries. */
#ifndef CONTAINER_HOOKS_LOADER_CACHE_H
#define CONTAINER_HOOKS_LOADER_CACHE_H

#include "container-hooks/bundle.h"

/* NULL: the image has none. */
GBytes *loader_cache_read(int root);

/*
 * Paths at which a program in the image may find a library @name: those of the first 1,024 folders
 * of its LD_LIBRARY_PATH, of the loader's cache (NULL: there is none), and of the folders that
 * every loader knows. Not all exist; some may be there twice. Of texts.
 */
GPtrArray *loader_places(const Bundle *bundle, GBytes *cache, const char *name);

/* Folders in which every loader of this machine's 64-bit programs looks; up to NULL. */
extern const char *const loader_folders[];

#endif
