/* SPDX-License-Identifier: MIT */
/* A host that is a node of a Kubernetes cluster: whether its GPUs can get there. */
#include "lib/program.h"
#include "host-agent/doctor/findings.h"

#define SUBJECT "Kubernetes"
#define CONF    "/etc/vgpu/kubernetes.conf"
#define KUBELET "/var/lib/kubelet"

/* NULL: it is right; else what vgpu-kubelet says. */
static char *fault_of_conf(void)
{
    const char *argv[] = {"vgpu-kubelet", "--check", NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    g_autoptr(GError) error = NULL;

    return program_run(&program, NULL, &error) ? NULL : g_strdup(error->message);
}

static gboolean is_running(void)
{
    const char *argv[] = {"systemctl", "is-active", "--quiet", "vgpu-kubelet.service", NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};

    return program_run(&program, NULL, NULL);
}

void check_kubernetes(Examination *exam)
{
    g_autofree char *fault = NULL;

    if (!host_has(exam, CONF)) {
        if (host_has(exam, KUBELET))
            finding_add(exam, FINDING_INFO, SUBJECT,
                        g_strdup("this host has a kubelet, and its GPUs are not offered to it"),
                        g_strdup("install vgpu-kubelet, and write " CONF
                                 ": docs/kubernetes.md, vgpu-kubelet(8)"));
        return;
    }
    fault = fault_of_conf();
    if (fault)
        finding_add(exam, FINDING_WARNING, SUBJECT, g_steal_pointer(&fault),
                    g_strdup("correct " CONF ", then \"systemctl restart vgpu-kubelet\""));
    else if (!is_running())
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup("vgpu-kubelet is not running, so no pod gets a slice"),
                    g_strdup("\"systemctl enable --now vgpu-kubelet\"; \"journalctl -u "
                             "vgpu-kubelet\" says why it ended"));
    else
        finding_ok(exam, SUBJECT, "vgpu-kubelet is running");
}
