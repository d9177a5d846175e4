/* SPDX-License-Identifier: MIT */
/*
 * spike: what the design of CUDA by a worker takes for true of NVIDIA's driver, asked of the driver
 * itself. Each question has a process of its own and a time limit, and one verdict: yes, no, or not
 * asked, and what was seen. The driver is loaded when it is asked, never linked.
 */
#ifndef TESTS_CUDA_SPIKE_H
#define TESTS_CUDA_SPIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

/* Where the range that a program and its worker share lies, and what the driver has of it. */
#define ARENA       0x300000000000ull
#define ARENA_BYTES (16ull << 40)
#define OWN_BYTES   (4ull << 40)

enum verdict { VERDICT_NO, VERDICT_YES, VERDICT_NOT_ASKED };

/* What is being done: said with a verdict if the process ends without one. */
void spike_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the process with its verdict. */
_Noreturn void spike_verdict(enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends it if a call of the driver's failed: with NOT_ASKED, or with what is set here once the
 * call is the question. */
extern enum verdict spike_failure;
void spike_need(CUresult result, const char *what);
/* This program again, for a part of a question that needs a fresh address space. */
_Noreturn void spike_again(const char *role, int fd);
/* Folders of NVIDIA's libraries, with ':' between them; NULL: where the loader looks. */
extern const char *spike_libraries;
/* As if this system let no process ask for its layout. */
extern bool spike_forks;
/* Loads the first of @names that is there; NULL: none. *found: which. */
void *spike_library(const char *const *names, const char **found);

/* The driver's functions, after card_load(). A missing one ends the process, NOT_ASKED. */
void card_load(void);
void *card_get(const char *name);
#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))card_get(#name))
/* Also initializes it, and makes a context. */
void card_open(void);
CUdeviceptr card_allocate(size_t bytes);
/* A kernel of compute_ptx.h, which the driver compiles. */
CUfunction card_function(const char *name);
/* Calls "count" at this address, and waits. */
CUresult card_count_at(CUdeviceptr at);
/* A copy there, a kernel, and a copy back; false: the numbers are wrong. */
bool card_computes(void);

/*
 * What libraries ask of the driver beside its calls (watch.c): from then on each table is noted,
 * and each call of a slot of a table that watch_slots() was told of.
 */
struct watched {
    uint8_t id[16];
    unsigned int slot, calls;
    char arguments[128]; /* of the first call */
};

void watch_begin(void);
/* False: there is no such table, or it cannot be watched. @slots: 0: as many as its size says. */
bool watch_slots(const uint8_t *id, unsigned int slots);
/* Tables that were asked for, and slots that were called; *count of them. */
const struct watched *watch_tables(unsigned int *count);
const struct watched *watch_calls(unsigned int *count);

/* The questions. They do not return. */
_Noreturn void ask_integrity(void);
_Noreturn void ask_painting(void);
_Noreturn void ask_tables(void);
_Noreturn void ask_runtimes(void);
_Noreturn void ask_pinned(void);
_Noreturn void ask_host_memory(void);
_Noreturn void ask_confined(void);

/* Roles of spike_again(). */
_Noreturn void integrity_answer(int fd);
_Noreturn void integrity_compare(int fd);
_Noreturn void host_memory_attribute(int fd);

#endif
