/* SPDX-License-Identifier: MIT */
/* Shared by the doctor's checks. */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include "host-agent/doctor/doctor.h"
#include "lib/host_root.h"

/**
 * Examination - one run of the checks
 * @for_vms: the kernel module is installed; else the host shares its GPUs with containers only
 * @findings: of Finding
 */
typedef struct {
    HostRoot *root;
    gboolean for_vms;
    GPtrArray *findings;
} Examination;

/* @subject has no fault. @format: the result. */
void finding_ok(Examination *exam, const char *subject, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* @text and @advice: taken. */
void finding_add(Examination *exam, Severity severity, const char *subject, char *text,
                 char *advice);

/* The same for what only VMs need: FINDING_INFO on a host for containers only. */
void finding_add_for_vms(Examination *exam, Severity severity, const char *subject, char *text,
                         char *advice);

/* A file or directory of the host exists. @path begins with a slash. */
gboolean host_has(const Examination *exam, const char *path);

/* A file's text without white space around it; NULL: none. To be freed. */
char *host_read(const Examination *exam, const char *path);

/* Names of a directory's entries, sorted; empty if it does not exist. */
GStrv host_list(const Examination *exam, const char *path);

/* For a program that a check asks: libvirt's may wait for a daemon that hangs. */
#define CHECK_SECONDS 20

/* One check each. */
typedef void Check(Examination *exam);
Check check_agent;
Check check_conf;
Check check_cuda_vms;
Check check_disk;
Check check_arbiters;
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
Check check_vms;
Check check_kubernetes;
Check check_limits;

#endif
