/* SPDX-License-Identifier: MIT */
#include "host-agent/doctor/doctor.h"

#include "host-agent/doctor/findings.h"
#include "lib/host_root.h"
#include "lib/sysfs.h"

#define MODULES_LOAD "lib/modules-load.d/mdev-vgpu.conf"

static void free_finding(void *data)
{
    Finding *finding = data;

    g_free(finding->text);
    g_free(finding->advice);
    g_free(finding);
}

void finding_add(Examination *exam, Severity severity, const char *subject, char *text,
                 char *advice)
{
    Finding *finding = g_new0(Finding, 1);

    finding->severity = severity;
    finding->subject = subject;
    finding->text = text;
    finding->advice = advice;
    g_ptr_array_add(exam->findings, finding);
}

void finding_add_for_vms(Examination *exam, Severity severity, const char *subject, char *text,
                         char *advice)
{
    finding_add(exam, exam->for_vms ? severity : FINDING_INFO, subject, text, advice);
}

void finding_ok(Examination *exam, const char *subject, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    finding_add(exam, FINDING_OK, subject, g_strdup_vprintf(format, args), NULL);
    va_end(args);
}

gboolean host_has(const Examination *exam, const char *path)
{
    return root_has(exam->root, path);
}

char *host_read(const Examination *exam, const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);

    return sysfs_read(exam->root, dir, name);
}

GStrv host_list(const Examination *exam, const char *path)
{
    return sysfs_list(exam->root, path);
}

/* Parts that the module needs, or a module that is loaded without them. */
static gboolean is_for_vms(const Examination *exam)
{
    return host_has(exam, "/sys/module/mdev_vgpu") || host_has(exam, "/usr/" MODULES_LOAD) ||
           host_has(exam, "/usr/local/" MODULES_LOAD);
}

GPtrArray *doctor_examine(HostRoot *root)
{
    static Check *const checks[] = {
        check_module,     check_agent,   check_engines,  check_arbiters,
        check_schedule,   check_vulkan,  check_cuda,     check_udmabuf,
        check_lsm,        check_kvm,     check_iommu,    check_groups,
        check_kvm_window, check_cgroups, check_programs, check_vms,
    };
    Examination exam = {
        .root = root,
        .findings = g_ptr_array_new_with_free_func(free_finding),
    };

    exam.for_vms = is_for_vms(&exam);
    for (guint i = 0; i < G_N_ELEMENTS(checks); i++)
        checks[i](&exam);
    return exam.findings;
}

const char *severity_name(Severity severity)
{
    static const char *const names[] = {
        [FINDING_OK] = "ok",
        [FINDING_INFO] = "info",
        [FINDING_WARNING] = "warning",
        [FINDING_PROBLEM] = "problem",
    };

    return names[severity];
}
