/* SPDX-License-Identifier: MIT */
/*
 * Which slice a GPU belongs to, in this process. Slices are found by the GPU's PCI address, as
 * GPU/SLICE/governor.sock in these places; the first that has one counts:
 *
 * - /run/vgpu/slices
 * - $VGPU_GOVERNOR_SLICES
 * - $VGPU_GOVERNOR_SOCKET: one slice's socket, for any GPU, if $VGPU_GOVERNOR_SLICES is not set
 *
 * A slice is required if a file "required" is beside its socket, or if VGPU_GOVERNOR_REQUIRED is 1.
 */
#ifndef GOVERNOR_CUDA_SLICES_H
#define GOVERNOR_CUDA_SLICES_H

#include <stdbool.h>

/* To be freed; NULL: @pci has no slice. @pci: lower case, with a domain of four digits. */
char *slices_socket_of(const char *pci);
bool slices_is_required(const char *socket_path);
/* True if a slice is required even for GPUs that have none. */
bool slices_are_required(void);
/* True if there is a slice of any GPU. */
bool slices_any(void);

#endif
