/* SPDX-License-Identifier: MIT */
/*
 * What the doctor's checks share.
 */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include "host-agent/doctor/doctor.h"

/**
 * Examination - one that is under way
 * @root: what stands for /
 * @for_vms: the kernel module is installed; else the host shares its GPUs with containers only
 * @findings: of Finding
 */
typedef struct {
    const char *root;
    gboolean for_vms;
    GPtrArray *findings;
} Examination;

/* All is well with @subject. @format: what was seen. */
void finding_ok(Examination *exam, const char *subject, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* @text and @advice: taken. */
void finding_add(Examination *exam, Severity severity, const char *subject, char *text,
                 char *advice);

/* The same of what only VMs need: FINDING_INFO on a host that is for containers only. */
void finding_add_for_vms(Examination *exam, Severity severity, const char *subject, char *text,
                         char *advice);

/* A file or directory of the host is there. @path begins with a slash. */
gboolean host_has(const Examination *exam, const char *path);

/* A file's text without white space around it; NULL where there is none. To be freed. */
char *host_read(const Examination *exam, const char *path);

/* Names of a directory's entries, sorted; empty where there is none. */
GStrv host_list(const Examination *exam, const char *path);

/* One check each. */
typedef void Check(Examination *exam);
Check check_iommu;
Check check_groups;
Check check_kvm;
Check check_kvm_window;
Check check_module;
Check check_lsm;
Check check_cgroups;
Check check_udmabuf;
Check check_vulkan;
Check check_programs;
Check check_agent;
Check check_engines;
Check check_arbiters;
Check check_vms;

#endif
