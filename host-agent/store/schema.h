/* SPDX-License-Identifier: MIT */
/*
 * The tables of the database, as steps from each version to the next. A released step is never
 * changed: a new one is added.
 */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

/* NULL terminated; the database's user_version is the number of steps that were done. */
extern const char *const schema_steps[];

#endif
