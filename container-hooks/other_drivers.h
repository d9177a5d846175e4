/* SPDX-License-Identifier: MIT */
/*
 * Drivers that an image brings for CUDA newer than the host's (forward compatibility). They are not
 * where its dynamic linker looks when the hook runs: the image's first program links them there
 * (NVIDIA's images, conda), or a program opens them by their path (Julia).
 */
#ifndef CONTAINER_HOOKS_OTHER_DRIVERS_H
#define CONTAINER_HOOKS_OTHER_DRIVERS_H

#include "container-hooks/bundle.h"

/* Paths of all libraries in the folders that such drivers are known to be in. Of texts. */
GPtrArray *other_drivers_find(int root, const Bundle *bundle);

#endif
