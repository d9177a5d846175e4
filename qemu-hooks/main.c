/* SPDX-License-Identifier: MIT */
/*
 * vgpu-qemu-hook(8): libvirt runs it when a domain starts and ends, with the domain's XML on
 * standard input. libvirt locks the domain meanwhile, so nothing here calls libvirt. Standard
 * output would replace the XML of a domain that is restored or migrated: nothing is written there.
 */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/bus.h"
#include "lib/input.h"
#include "qemu-hooks/prepare.h"

/* For tests: a directory that replaces /. libvirt passes no such variable on. */
#define ROOT_VARIABLE "VGPU_HOOK_ROOT"

static Domain *read_domain(GError **error)
{
    g_autoptr(GString) xml = input_read(DOMAIN_XML_MAX, error);

    return xml ? domain_parse(xml->str, xml->len, error) : NULL;
}

static int run_prepare(const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(HostRoot) root = host_root_new(g_getenv(ROOT_VARIABLE), &error);
    g_autoptr(Domain) domain = root ? read_domain(&error) : NULL;

    if (domain && prepare_domain(root, name, domain, &error))
        return EXIT_SUCCESS;
    g_printerr("vgpu-qemu-hook: cannot start domain %s: %s\n", name, error->message);
    return EXIT_FAILURE;
}

/*
 * Removes what was made for the domain. vgpud is not started for that, and nothing depends on the
 * exit status: vgpud finds what is left by itself.
 */
static int run_release(const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Domain) domain = read_domain(NULL);
    g_autoptr(AgentClient) link = NULL;

    if (domain && !domain->mdevs[0] && !domain->requests->len)
        return EXIT_SUCCESS;
    link = agent_client_open(FALSE, &error);
    if (link && agent_client_call(link, "ReleaseDomain", g_variant_new("(s)", name), &error))
        return EXIT_SUCCESS;
    g_printerr(
        "vgpu-qemu-hook: cannot remove the vGPUs of domain %s now, vgpud will do it later: %s\n",
        name, error->message);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc == 2 && g_str_equal(argv[1], "--version")) {
        puts("vgpu-qemu-hook " VGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (argc < 4) {
        g_printerr("vgpu-qemu-hook: usage, by libvirt: vgpu-qemu-hook DOMAIN OPERATION "
                   "SUB-OPERATION EXTRA, see vgpu-qemu-hook(8)\n");
        return 2;
    }
    if (g_str_equal(argv[2], "prepare") && g_str_equal(argv[3], "begin"))
        return run_prepare(argv[1]);
    if (g_str_equal(argv[2], "release") && g_str_equal(argv[3], "end"))
        return run_release(argv[1]);
    /*
     * At "reconnect" anything but success would kill a running VM. Other operations are not ours to
     * judge, either.
     */
    return EXIT_SUCCESS;
}
