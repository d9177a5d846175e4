/* SPDX-License-Identifier: MIT */
/*
 * vgpu-container-hook(8): what a container's runtime runs when a container with a slice is made and
 * when it has ended, with the container's state as its standard input. CDI's specification names
 * it; see daemon/sync/cdi.c.
 */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "container-hooks/cuda_door.h"
#include "container-hooks/namespaces.h"
#include "container-hooks/own_mounts.h"
#include "container-hooks/state.h"
#include "lib/bus.h"

/*
 * For an answer of vgpud, which is known to run. It may have to wait for polkit, which may have to
 * be started first. With the time until vgpud is reached it is about as long as the runtime waits.
 */
#define CLAIM_MS 25000
/* A container's end must be quick. */
#define RELEASE_MS 3000

/* On standard error, which some runtimes discard, and in the system's log. */
static void log_refusal(int priority, const char *format, const char *slice, const char *why)
{
    g_autofree char *text = g_strdup_printf(format, slice, why);

    g_printerr("vgpu-container-hook: %s\n", text);
    openlog("vgpu-container-hook", LOG_PID, LOG_DAEMON);
    syslog(priority, "%s", text);
    closelog();
}

/* If this fails the container does not start: otherwise nobody would know that it has the slice. */
static int claim_slice(const char *slice)
{
    g_auto(State) state = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) link = NULL;

    if (state_read(&state, &error))
        link = agent_client_open_patiently(&error);
    if (link &&
        agent_client_call_within(link, CLAIM_MS, "ClaimSlice",
                                 g_variant_new("(ssu)", slice, state.id, state.pid), &error))
        return EXIT_SUCCESS;
    log_refusal(LOG_ERR, "cannot give the container slice %s: %s", slice, error->message);
    return EXIT_FAILURE;
}

/* vgpud is not started for this: it notices the container's end by itself. */
static int release_slice(const char *slice)
{
    g_auto(State) state = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) link = NULL;

    if (state_read(&state, &error))
        link = agent_client_open(FALSE, &error);
    if (!link || !agent_client_call_within(link, RELEASE_MS, "ReleaseSlice",
                                           g_variant_new("(ss)", slice, state.id), &error))
        log_refusal(LOG_WARNING, "cannot give back slice %s now, vgpud will do it later: %s", slice,
                    error->message);
    return EXIT_SUCCESS;
}

/*
 * Of the container that is being made; NULL with @error. The hook is in its namespaces then: the
 * bundle is the runtime's, and the container's root may be unable to read it.
 */
static Bundle *enter_container(GError **error)
{
    g_auto(State) state = {0};
    g_autoptr(Bundle) bundle = NULL;

    if (state_read(&state, error))
        bundle = bundle_read(state.bundle, error);
    return bundle && namespaces_enter(state.pid, error) ? g_steal_pointer(&bundle) : NULL;
}

/* If this fails the container does not start: its programs would not find the slice. */
static int restore_mounts(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Bundle) bundle = enter_container(&error);

    if (bundle && own_mounts_restore(bundle, &error))
        return EXIT_SUCCESS;
    log_refusal(LOG_ERR, "cannot give the container its slice%s: %s", "", error->message);
    return EXIT_FAILURE;
}

/*
 * If this fails the container does not start: its programs could use all of the GPU's memory, or
 * would find no GPU.
 */
static int put_cuda(const char *folder, gboolean (*put)(const Bundle *, const char *, GError **))
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Bundle) bundle = enter_container(&error);

    if (bundle && put(bundle, folder, &error))
        return EXIT_SUCCESS;
    log_refusal(LOG_ERR, "cannot put the CUDA door %s into the container: %s", folder,
                error->message);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    /* Of an older release, which called them at createContainer. */
    static const char *const old_verbs[] = {"mounts", "cuda", "cuda-remote", NULL};

    if (argc == 2 && g_str_equal(argv[1], "--version")) {
        puts("vgpu-container-hook " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc == 3 && g_str_equal(argv[1], "claim"))
        return claim_slice(argv[2]);
    if (argc == 3 && g_str_equal(argv[1], "release"))
        return release_slice(argv[2]);
    if (argc == 2 && g_str_equal(argv[1], "restore-mounts"))
        return restore_mounts();
    if (argc == 3 && g_str_equal(argv[1], "put-cuda") && g_path_is_absolute(argv[2]))
        return put_cuda(argv[2], cuda_door_put);
    if (argc == 3 && g_str_equal(argv[1], "put-cuda-remote") && g_path_is_absolute(argv[2]))
        return put_cuda(argv[2], cuda_remote_put);
    if (argc > 1 && g_strv_contains(old_verbs, argv[1])) {
        log_refusal(LOG_ERR, "%s%s", "",
                    "the container's CDI file is of an older release: restart vgpud, or in a VM "
                    "vgpu-guest-cdi, and start the container again; if that is in vain, make it "
                    "again");
        return EXIT_FAILURE;
    }
    g_printerr(
        "vgpu-container-hook: usage, by container runtimes: vgpu-container-hook claim|release "
        "SLICE, or restore-mounts, or put-cuda|put-cuda-remote FOLDER, see "
        "vgpu-container-hook(8)\n");
    return 2;
}
