/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/findings.h"

#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/model/gpu_health.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/host_root.h"

/**
 * Findings
 * @gpus: address to Found
 * @boot: the id of this boot; "": it is not known
 */
struct Findings {
    Host *host;
    const MeterLink *meter;
    GHashTable *gpus;
    char *boot;
};

/**
 * Found - about a GPU that is or was present
 * @reasons: the sentence of each kind; NULL: there is no such finding
 * @told: aa{sv}; NULL: the meter has told nothing yet
 * @cleared: errors up to these counts were cleared in this boot
 */
typedef struct {
    char *reasons[HEALTH_KINDS];
    HealthGrade grades[HEALTH_KINDS];
    GVariant *told;
    gboolean cleared;
    guint64 aer_fatal;
    guint64 ecc;
} Found;

static void clear_reasons(Found *found)
{
    for (guint i = 0; i < HEALTH_KINDS; i++)
        g_clear_pointer(&found->reasons[i], g_free);
}

static void found_free(void *data)
{
    Found *found = data;

    clear_reasons(found);
    g_clear_pointer(&found->told, g_variant_unref);
    g_free(found);
}

static Found *found_at(Findings *findings, const char *gpu)
{
    Found *found = g_hash_table_lookup(findings->gpus, gpu);

    if (!found) {
        found = g_new0(Found, 1);
        g_hash_table_insert(findings->gpus, g_strdup(gpu), found);
    }
    return found;
}

static void log_error(GError *error)
{
    g_message("%s", error->message);
    g_error_free(error);
}

static void store_reason(const Findings *findings, const char *gpu, HealthKind kind,
                         const char *reason)
{
    Db *db = host_db(findings->host);
    GError *error = NULL;

    if (reason)
        gpu_table_add_finding(db, gpu, kind, reason, g_get_real_time() / G_USEC_PER_SEC, &error);
    else
        gpu_table_end_finding(db, gpu, kind, &error);
    if (error)
        log_error(error);
}

static HealthGrade worst_grade(const Found *found)
{
    HealthGrade worst = HEALTH_NOTICE;

    for (guint i = 0; i < HEALTH_KINDS; i++)
        if (found->reasons[i])
            worst = MAX(worst, found->grades[i]);
    return worst;
}

static GStrv closing_reasons(const Found *found)
{
    g_autoptr(GStrvBuilder) reasons = g_strv_builder_new();

    for (guint i = 0; i < HEALTH_KINDS; i++)
        if (found->reasons[i] && found->grades[i] != HEALTH_NOTICE)
            g_strv_builder_add(reasons, found->reasons[i]);
    return g_strv_builder_end(reasons);
}

/* Of what was stored: the meter has told nothing yet. */
static GVariant *dictionaries_of(const Found *found)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < HEALTH_KINDS; i++) {
        GVariantDict dict;

        if (!found->reasons[i])
            continue;
        g_variant_dict_init(&dict, NULL);
        g_variant_dict_insert(&dict, "Kind", "s", health_kind_name((HealthKind)i));
        g_variant_dict_insert(&dict, "Grade", "s", health_grade_name(found->grades[i]));
        g_variant_dict_insert(&dict, "Reason", "s", found->reasons[i]);
        g_variant_builder_add_value(&list, g_variant_dict_end(&dict));
    }
    return g_variant_builder_end(&list);
}

static void show_findings(const Found *found, VgpuGpu *interface)
{
    HealthGrade worst = worst_grade(found);
    g_auto(GStrv) reasons = closing_reasons(found);

    vgpu_gpu_set_healthy(interface, worst == HEALTH_NOTICE);
    vgpu_gpu_set_health_reasons(interface, (const char *const *)reasons);
    vgpu_gpu_set_health_grade(interface,
                              worst == HEALTH_NOTICE ? "good" : health_grade_name(worst));
    vgpu_gpu_set_health_findings(interface, found->told ? found->told : dictionaries_of(found));
}

static void tell_of_finding(const Findings *findings, const char *gpu, const Found *found,
                            HealthKind kind)
{
    const char *reason = found->reasons[kind];
    gboolean good = host_gpu(findings->host, gpu) && worst_grade(found) == HEALTH_NOTICE;

    if (!reason)
        host_event(findings->host, "health", gpu, NULL, "GPU %s: no more \"%s\"%s", gpu,
                   health_kind_name(kind), good ? "; it is healthy" : "");
    else if (found->grades[kind] == HEALTH_NOTICE)
        host_event(findings->host, "health", gpu, NULL, "GPU %s: %s; this is reported only", gpu,
                   reason);
    else
        host_event(findings->host, "health", gpu, NULL,
                   "GPU %s is not healthy: %s; no new work is placed on it%s", gpu, reason,
                   health_kind_is_held(kind) ? " until \"vgpuctl gpu clear\"" : "");
}

static void take_finding(Found *found, GVariant *dict)
{
    const char *name = "", *grade = "", *reason = "";
    HealthKind kind;

    g_variant_lookup(dict, "Kind", "&s", &name);
    g_variant_lookup(dict, "Grade", "&s", &grade);
    g_variant_lookup(dict, "Reason", "&s", &reason);
    if (g_variant_lookup(dict, "Slice", "s", NULL) || !health_kind_parse(name, &kind) ||
        !health_grade_parse(grade, &found->grades[kind]))
        return;
    g_free(found->reasons[kind]);
    found->reasons[kind] = g_strdup(reason);
}

static void take_findings(Found *found, GVariant *told)
{
    GVariantIter iter;
    GVariant *dict;

    g_variant_ref_sink(told);
    g_clear_pointer(&found->told, g_variant_unref);
    found->told = told;
    clear_reasons(found);
    g_variant_iter_init(&iter, told);
    while ((dict = g_variant_iter_next_value(&iter))) {
        take_finding(found, dict);
        g_variant_unref(dict);
    }
}

/* Reports what is new since then. Returns whether anything is. */
static gboolean tell_changes(const Findings *findings, const char *gpu, const Found *found,
                             const gboolean *before)
{
    gboolean changed = FALSE;

    for (guint i = 0; i < HEALTH_KINDS; i++) {
        if (!found->reasons[i] == !before[i])
            continue;
        changed = TRUE;
        store_reason(findings, gpu, (HealthKind)i, found->reasons[i]);
        tell_of_finding(findings, gpu, found, (HealthKind)i);
    }
    return changed;
}

void findings_set(Findings *findings, const char *gpu, GVariant *told)
{
    VgpuGpu *interface = host_gpu_interface(findings->host, gpu);
    Found *found = found_at(findings, gpu);
    g_autofree char *state = audit_state_of(AUDIT_GPU, gpu);
    gboolean before[HEALTH_KINDS];
    gboolean changed;

    for (guint i = 0; i < HEALTH_KINDS; i++)
        before[i] = found->reasons[i] != NULL;
    take_findings(found, told);
    changed = tell_changes(findings, gpu, found, before);
    if (interface)
        show_findings(found, interface);
    if (changed)
        audit_write_change(AUDIT_BY_HEALTH, AUDIT_DO_FIND, AUDIT_GPU, gpu, state, NULL);
}

GVariant *findings_held(const Findings *findings)
{
    GVariantBuilder list;
    GHashTableIter iter;
    void *gpu;
    void *value;

    g_variant_builder_init(&list, G_VARIANT_TYPE("a(sss)"));
    g_hash_table_iter_init(&iter, findings->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, &value)) {
        const Found *found = value;

        for (guint i = 0; i < HEALTH_KINDS; i++)
            if (found->reasons[i] && health_kind_is_held((HealthKind)i))
                g_variant_builder_add(&list, "(sss)", gpu, health_kind_name((HealthKind)i),
                                      found->reasons[i]);
    }
    return g_variant_builder_end(&list);
}

GVariant *findings_cleared(const Findings *findings)
{
    GVariantBuilder list;
    GHashTableIter iter;
    void *gpu;
    void *value;

    g_variant_builder_init(&list, G_VARIANT_TYPE("a(stt)"));
    g_hash_table_iter_init(&iter, findings->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, &value)) {
        const Found *found = value;

        if (found->cleared)
            g_variant_builder_add(&list, "(stt)", gpu, found->aer_fatal, found->ecc);
    }
    return g_variant_builder_end(&list);
}

/* A call of ClearHealth that is answered when the meter has read the GPU's counters. */
typedef struct {
    Findings *findings;
    GDBusMethodInvocation *invocation;
    char *gpu;
    char *user;
} Clearing;

static void clearing_free(Clearing *clearing)
{
    g_free(clearing->gpu);
    g_free(clearing->user);
    g_free(clearing);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Clearing, clearing_free)

/* The meter looks again, and tells what still holds. */
static void end_clearing(const Clearing *clearing, guint64 aer_fatal, guint64 ecc)
{
    Findings *findings = clearing->findings;
    Found *found = found_at(findings, clearing->gpu);
    VgpuGpu *interface = host_gpu_interface(findings->host, clearing->gpu);

    clear_reasons(found);
    g_clear_pointer(&found->told, g_variant_unref);
    found->cleared = TRUE;
    found->aer_fatal = aer_fatal;
    found->ecc = ecc;
    if (interface)
        show_findings(found, interface);
    host_event(findings->host, "health", clearing->gpu, NULL, "GPU %s was declared healthy by %s",
               clearing->gpu, clearing->user);
    meter_tell(findings->meter, "HealthCleared",
               g_variant_new("(stt)", clearing->gpu, aer_fatal, ecc));
}

static void errors_acknowledged(GVariant *answer, const GError *failed, void *data)
{
    g_autoptr(Clearing) clearing = data;
    const Findings *findings = clearing->findings;
    guint64 aer_fatal, ecc;
    GError *error = failed ? g_error_copy(failed) : NULL;

    if (answer)
        g_variant_get(answer, "(tt)", &aer_fatal, &ecc);
    if (error || !gpu_table_clear(host_db(findings->host), clearing->gpu, findings->boot, aer_fatal,
                                  ecc, &error)) {
        call_take_error(clearing->invocation, error);
        return;
    }
    end_clearing(clearing, aer_fatal, ecc);
    call_answer(clearing->invocation, NULL);
}

static void clear_findings(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Findings *findings = data;
    const Gpu *gpu = call_gpu(invocation, findings->host);
    Clearing *clearing;

    if (!gpu)
        return;
    clearing = g_new0(Clearing, 1);
    clearing->findings = findings;
    clearing->invocation = invocation;
    clearing->gpu = g_strdup(gpu->pci->address);
    clearing->user = g_strdup(caller->user);
    meter_ask(findings->meter, "AcknowledgeHealth", g_variant_new("(s)", clearing->gpu),
              errors_acknowledged, clearing);
}

static void gpu_added(VgpuGpu *interface, void *data)
{
    const Found *found =
        g_hash_table_lookup(((Findings *)data)->gpus, vgpu_gpu_get_address(interface));

    vgpu_gpu_set_healthy(interface, TRUE);
    if (found)
        show_findings(found, interface);
    authority_answer(interface, "handle-clear-health", ACTION_ADMINISTER, clear_findings, NULL,
                     data);
}

static void load_finding(const char *gpu, HealthKind kind, const char *reason, void *data)
{
    Found *found = found_at(data, gpu);

    g_free(found->reasons[kind]);
    found->reasons[kind] = g_strdup(reason);
    found->grades[kind] = health_kind_grade(kind);
}

static void load_cleared(const char *gpu, guint64 aer_fatal, guint64 ecc, void *data)
{
    Found *found = found_at(data, gpu);

    found->cleared = TRUE;
    found->aer_fatal = aer_fatal;
    found->ecc = ecc;
}

/* Only findings that an operator has to clear: the others are found again if they still hold. */
static void load_findings(Findings *findings)
{
    GError *error = NULL;

    if (!gpu_table_load(host_db(findings->host), findings->boot, load_finding, load_cleared,
                        findings, &error))
        log_error(error);
}

Findings *findings_new(Host *host, const MeterLink *meter)
{
    Findings *findings = g_new0(Findings, 1);

    findings->host = host;
    findings->meter = meter;
    findings->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, found_free);
    findings->boot = sysfs_read(host_root(host), "/proc/sys/kernel/random", "boot_id");
    if (!findings->boot)
        findings->boot = g_strdup("");
    load_findings(findings);
    host_watch(host, gpu_added, NULL, findings);
    return findings;
}

void findings_free(Findings *findings)
{
    g_hash_table_unref(findings->gpus);
    g_free(findings->boot);
    g_free(findings);
}
