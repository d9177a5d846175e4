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

/*
 * Adds the libraries @paths, texts as "/usr/lib/libcuda.so.1", to the loader's cache of the image,
 * so that "ldconfig -p" lists them. An image without a cache, or with one that is not glibc's,
 * stays as it is. FALSE: it cannot be written.
 */
gboolean loader_cache_add(int root, const GPtrArray *paths, GError **error);

/* Folders in which every loader of this machine's 64-bit programs looks; up to NULL. */
extern const char *const loader_folders[];

#endif
