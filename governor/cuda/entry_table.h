/* SPDX-License-Identifier: MIT */
/*
 * The tables of entry points (entry_points.def and nvml_entry_points.def), read and checked for
 * the programs that make code from them. What is wrong in a table ends the program with a sentence.
 */
#ifndef GOVERNOR_CUDA_ENTRY_TABLE_H
#define GOVERNOR_CUDA_ENTRY_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define ENTRIES_MAX   1200
#define ARGUMENTS_MAX 16

struct argument {
    char *type, *name, *direction, *count;
    unsigned int stars;
    unsigned int bytes;
};

struct entry {
    char *name, *base, *since, *class, *kind, *text;
    struct argument arguments[ARGUMENTS_MAX];
    unsigned int count;
    bool known;
};

/* In the order of names. */
extern struct entry entries[ENTRIES_MAX];
extern unsigned int entries_count;

void entry_table_read(const char *table, const char *type_table);
bool has_signature(const struct entry *entry);
bool is_kind(const struct entry *entry, const char *kind);
/* Its function is one of ours. */
bool is_wrapped(const struct entry *entry);

/* What such programs have in common. */
void __attribute__((noreturn, format(printf, 1, 2))) table_fail(const char *format, ...);
FILE *open_file(const char *path, const char *mode);
/* Up to @end, without blanks around it; *at is behind it then. */
char *table_field(char **at, char end);
char *table_copy(const char *from, size_t length);

#endif
