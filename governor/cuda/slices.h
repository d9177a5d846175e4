/* SPDX-License-Identifier: MIT */
/*
 * Which slice a GPU is of, in this process. Slices are found by the GPU's PCI address, as
 * GPU/SLICE/governor.sock in /run/vgpu/slices        which decides alone if it has a slice of that
 * GPU $VGPU_GOVERNOR_SLICES   else $VGPU_GOVERNOR_SOCKET   else: one slice's socket for whatever
 * GPU there is A slice is required if a file "required" is beside its socket, or
 * VGPU_GOVERNOR_REQUIRED=1.
 */
#ifndef GOVERNOR_CUDA_SLICES_H
#define GOVERNOR_CUDA_SLICES_H

#include <stdbool.h>

/* To be freed; NULL: @pci is of no slice. @pci: in small letters, with four digits of domain. */
char *slices_socket_of(const char *pci);
bool slices_is_required(const char *socket_path);
/* Even of GPUs without one. */
bool slices_are_required(void);
/* True where there is a slice of any GPU. */
bool slices_any(void);

#endif
