/* SPDX-License-Identifier: MIT */
/* All functions of this library, by the names that programs ask for. */
#ifndef CUDA_REMOTE_GUEST_ENTRIES_H
#define CUDA_REMOTE_GUEST_ENTRIES_H

struct entry {
    const char *name, *base;
    void (*function)(void);
    int since;           /* version of CUDA that has introduced this form */
    unsigned int number; /* on the wire */
};

extern const struct entry entries[];
extern const unsigned int entries_count;

#endif
