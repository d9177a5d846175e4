/* SPDX-License-Identifier: MIT */
/*
 * A slice's device memory by member, in bytes. This is the only ledger: grants never exceed the
 * limit, however many members ask at once.
 */
#ifndef GOVERNOR_LEDGER_H
#define GOVERNOR_LEDGER_H

#include "governor_protocol.h"

#include <glib.h>
#include <stdbool.h>

/*
 * Limits of remembered objects, of a member and of all members of a slice together. An object of
 * two members counts twice.
 */
#define LEDGER_MEMBER_OBJECTS 4096
#define LEDGER_SLICE_OBJECTS  16384

/**
 * struct ledger - of a slice
 * @limit: of device memory, 0: none. May be below what is used, after it was lowered
 * @spill_limit: how much more may go to host memory, 0: nothing
 * @driver: the part of @used that drivers use for themselves
 * @ungoverned: the part of @used that no member has requested
 * @objects: shared by members; by name, of struct ledger_object. NULL: none
 * @objects_held: sum over all members
 */
struct ledger {
    uint64_t limit;
    uint64_t spill_limit;
    uint64_t used;
    uint64_t spill_used;
    uint64_t driver;
    uint64_t ungoverned;
    GTree *objects;
    unsigned objects_held;
};

/**
 * struct holding - one member's part of it
 * @device, @spilled: bytes that are its own
 * @driver: bytes that the driver uses for itself in its process
 * @objects: struct ledger_object and how many times it holds it. NULL: none
 */
struct holding {
    uint64_t device;
    uint64_t spilled;
    uint64_t driver;
    GHashTable *objects;
};

/* Memory that several members may hold: charged once, and owned by none. */
struct ledger_object {
    struct governor_object_name name;
    uint64_t device;
    uint64_t spilled;
    unsigned members;
};

/*
 * Returns 0, and in @spilled how many of @bytes must go to host memory (all or nothing). Otherwise
 * an errno: ENOMEM beyond the limit, EINVAL nothing or more than any machine has.
 */
int ledger_reserve(struct ledger *ledger, struct holding *holding, uint64_t bytes, bool may_spill,
                   uint64_t *spilled);

/*
 * @spilled of @bytes were in host memory. Returns false and changes nothing if the member does not
 * hold that much.
 */
bool ledger_release(struct ledger *ledger, struct holding *holding, uint64_t bytes,
                    uint64_t spilled);

/*
 * What a member held before this arbiter started: accepted as it is, even beyond the limit. False:
 * impossible numbers.
 */
bool ledger_adopt(struct ledger *ledger, struct holding *holding, uint64_t device,
                  uint64_t spilled);

/*
 * The object @name is shared: @bytes of what the member holds, @spilled of them in host memory,
 * become the object's charge, or are returned as far as it is charged already. Returns 0 or an
 * errno: ENOSPC too many objects, nothing is changed; EINVAL the member does not hold that much.
 */
int ledger_share(struct ledger *ledger, struct holding *holding,
                 const struct governor_object_name *name, uint64_t bytes, uint64_t spilled);

/*
 * The member holds the object, too; it is charged as far as nobody has said that it is so large.
 * An errno as of ledger_reserve(), or ENOSPC as above.
 */
int ledger_attach(struct ledger *ledger, struct holding *holding,
                  const struct governor_object_name *name, uint64_t bytes);

/* The member holds it one time less. False: it does not hold it. */
bool ledger_detach(struct ledger *ledger, struct holding *holding,
                   const struct governor_object_name *name);

/* For ledger_forget(): all objects of a member. */
void ledger_detach_all(struct ledger *ledger, struct holding *holding);

/*
 * What the driver uses for itself in the member's process; replaces the last value and is charged
 * even beyond the limit. False: an impossible number.
 */
bool ledger_set_driver(struct ledger *ledger, struct holding *holding, uint64_t bytes);

/*
 * What processes of the slice have beside what its members requested; likewise replaces the last
 * value, beyond the limit as well.
 */
bool ledger_set_ungoverned(struct ledger *ledger, uint64_t bytes);

/* The member has ended; all that it held is released. */
void ledger_forget(struct ledger *ledger, struct holding *holding);

#endif
