/* SPDX-License-Identifier: MIT */
/* vgpud's database, for those who copy it: only vgpud itself uses what is in it. */
#ifndef LIB_DATABASE_H
#define LIB_DATABASE_H

/* PRAGMA user_version of a database of this vgpud. An older one it migrates; a newer one it
 * refuses. */
#define DATABASE_VERSION 18

#endif
