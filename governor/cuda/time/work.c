// SPDX-License-Identifier: MIT
#include "work.h"

uint64_t work_begin(struct gpu *gpu, enum work_class class, uint64_t ns, bool deferred)
{
    (void)class;
    return governor_member_begin(gpu->member, ns + work_owed(gpu), deferred);
}

void work_end(struct gpu *gpu, enum work_class class, uint64_t debit, uint64_t ns)
{
    (void)class;
    ns += atomic_exchange_explicit(&gpu->owed, 0, memory_order_relaxed);
    governor_member_end(gpu->member, debit, ns);
}

void work_cancel(struct gpu *gpu, uint64_t debit)
{
    governor_member_cancel(gpu->member, debit);
}

void work_owe(struct gpu *gpu, enum work_class class, uint64_t ns)
{
    (void)class;
    atomic_fetch_add_explicit(&gpu->owed, ns, memory_order_relaxed);
}

uint64_t work_owed(const struct gpu *gpu)
{
    return atomic_load_explicit(&gpu->owed, memory_order_relaxed);
}
