// SPDX-License-Identifier: MIT
#include "compute.h"
#include "tenant.h"

struct line *line;

void tenant_open(struct live *live, const char *const *slices)
{
    line = line_new();
    live_open(live, slices);
}

void tenant_close(struct live *live)
{
    live_close(live);
    line_free(line);
}

GovernorMember *tenant_join(const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);

    g_assert_nonnull(member);
    report->ready = 1;
    return member;
}

void tenant_done(struct live_report *report, uint64_t length)
{
    report->last_at = clock_now();
    report->used_ns += length;
    report->done++;
}

void tenant_execute(GovernorMember *member, struct live_report *report, uint64_t estimate,
                    uint64_t length)
{
    bool metered = compute_is_metered(member);
    uint64_t debit = 0;

    if (metered)
        debit = compute_begin(member, estimate, false);
    else
        compute_count(member);
    line_await(line_submit(line, length));
    if (metered)
        governor_member_end(member, debit, length);
    tenant_done(report, length);
}

void tenant_batches(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = tenant_join(socket_path, report);

    (void)live;
    for (;;)
        tenant_execute(member, report, 2 * NS_PER_MS, 2 * NS_PER_MS);
}
