// SPDX-License-Identifier: MIT
#include "work.h"

uint64_t work_begin(struct gpu *gpu, const struct governor_work *work)
{
    struct governor_work owing = *work;

    owing.estimate_ns += work_owed(gpu, work->class);
    return governor_member_submit(gpu->member, &owing);
}

void work_end(struct gpu *gpu, enum governor_class class, uint64_t debit, uint64_t ns)
{
    ns += atomic_exchange_explicit(&gpu->owed[class], 0, memory_order_relaxed);
    governor_member_end(gpu->member, debit, ns);
}

void work_ran(struct gpu *gpu, enum governor_class class, uint64_t debit, uint64_t begin_at,
              uint64_t end_at)
{
    if (work_owed(gpu, class))
        work_end(gpu, class, debit, end_at - begin_at);
    else
        governor_member_ran(gpu->member, debit, begin_at, end_at);
}

void work_cancel(struct gpu *gpu, uint64_t debit)
{
    governor_member_cancel(gpu->member, debit);
}

void work_owe(struct gpu *gpu, enum governor_class class, uint64_t ns)
{
    atomic_fetch_add_explicit(&gpu->owed[class], ns, memory_order_relaxed);
}

uint64_t work_owed(const struct gpu *gpu, enum governor_class class)
{
    return atomic_load_explicit(&gpu->owed[class], memory_order_relaxed);
}
