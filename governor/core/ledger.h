/* SPDX-License-Identifier: MIT */
/*
 * Who has how much device memory of a slice. The only one of its kind: what is granted here never
 * goes beyond the limit, however many ask at once. Bytes.
 */
#ifndef GOVERNOR_LEDGER_H
#define GOVERNOR_LEDGER_H

#include "governor_protocol.h"

#include <glib.h>
#include <stdbool.h>

/* Objects that are remembered of a member, and of all members of a slice together; what two members
 * have counts twice. */
#define LEDGER_MEMBER_OBJECTS 4096
#define LEDGER_SLICE_OBJECTS  16384

/**
 * struct ledger - of a slice
 * @limit: of device memory, 0: none. May be below what is used, after it was lowered
 * @spill_limit: how much more may go to host memory, 0: nothing
 * @driver: of @used, what drivers have for themselves
 * @objects: that members share; by name, of struct ledger_object. NULL: none
 * @objects_held: sum over all members
 */
struct ledger {
    uint64_t limit;
    uint64_t spill_limit;
    uint64_t used;
    uint64_t spill_used;
    uint64_t driver;
    GTree *objects;
    unsigned objects_held;
};

/**
 * struct holding - what one member holds of it
 * @device, @spilled: bytes that are its own
 * @driver: bytes that the driver has for itself in its process
 * @objects: struct ledger_object and how many times it has it. NULL: none
 */
struct holding {
    uint64_t device;
    uint64_t spilled;
    uint64_t driver;
    GHashTable *objects;
};

/* Memory that several members may have: charged once, and nobody's own. */
struct ledger_object {
    struct governor_object_name name;
    uint64_t device;
    uint64_t spilled;
    unsigned members;
};

/*
 * 0, with in @spilled how many of @bytes have to go to host memory (all or nothing); else an errno:
 * ENOMEM beyond the limit, EINVAL nothing or more than any machine has.
 */
int ledger_reserve(struct ledger *ledger, struct holding *holding, uint64_t bytes, bool may_spill,
                   uint64_t *spilled);

/* @spilled of @bytes were in host memory. False, and nothing is changed, where the member doesn't
 * hold that much. */
bool ledger_release(struct ledger *ledger, struct holding *holding, uint64_t bytes,
                    uint64_t spilled);

/* What a member had before its arbiter was there: taken as it is, even beyond the limit. False:
 * impossible numbers. */
bool ledger_adopt(struct ledger *ledger, struct holding *holding, uint64_t device,
                  uint64_t spilled);

/*
 * What stands for @name is shared: @bytes of what the member holds, of them @spilled in host
 * memory, become the object's, or are given back where it has been charged already. 0, or an errno:
 * ENOSPC too many objects, nothing is changed; EINVAL the member doesn't hold that much.
 */
int ledger_share(struct ledger *ledger, struct holding *holding,
                 const struct governor_object_name *name, uint64_t bytes, uint64_t spilled);

/* The member has the object too; it is charged if nobody has it. An errno as of ledger_reserve(),
 * or ENOSPC as above. */
int ledger_attach(struct ledger *ledger, struct holding *holding,
                  const struct governor_object_name *name, uint64_t bytes);

/* It has it one time less. False: it hasn't got it. */
bool ledger_detach(struct ledger *ledger, struct holding *holding,
                   const struct governor_object_name *name);

/* For ledger_forget(): all objects of a member. */
void ledger_detach_all(struct ledger *ledger, struct holding *holding);

/* What the driver has for itself in the member's process, in place of what it had: charged as it
 * is, even beyond the limit. False: an impossible number. */
bool ledger_set_driver(struct ledger *ledger, struct holding *holding, uint64_t bytes);

/* A member is gone, and all that it held with it. */
void ledger_forget(struct ledger *ledger, struct holding *holding);

#endif
