/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/binding.h"

#include "host-agent/daemon/modes/kernel_call.h"
#include "lib/agent_error.h"
#include "lib/pci.h"

#define VFIO_PCI "vfio-pci"
#define BUS      "sys/bus/pci"

static gboolean write_bus(const char *root, const char *name, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(root[0] ? root : "/", BUS, name, NULL);

    return kernel_write(path, text, error);
}

/* Which driver drivers_probe will find. @driver: "": the kernel's choice. */
static gboolean set_override(const PciDevice *device, const char *driver, GError **error)
{
    g_autofree char *path = g_build_filename(device->dir, "driver_override", NULL);
    g_autofree char *line = g_strconcat(driver, "\n", NULL);

    return kernel_write(path, line, error);
}

static gboolean unbind(const char *root, const PciDevice *device, GError **error)
{
    g_autofree char *path = g_strdup_printf("drivers/%s/unbind", device->driver);

    return write_bus(root, path, device->address, error);
}

static gboolean must_have_driver(const char *root, const char *address, gboolean vfio,
                                 GError **error)
{
    g_autoptr(PciDevice) device = pci_device_read(root, address);
    gboolean is_vfio = device && g_strcmp0(device->driver, VFIO_PCI) == 0;

    if (device && device->driver && is_vfio == vfio)
        return TRUE;
    if (!device)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s: the device has just gone",
                    address);
    else if (vfio)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s: vfio-pci did not take it; the kernel log may say why (dmesg)", address);
    else if (is_vfio)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s: vfio-pci took it again at once; are there vfio-pci.ids= on the kernel's "
                    "command line or in /etc/modprobe.d?",
                    address);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                    "%s: no driver took it; load the vendor's driver", address);
    return FALSE;
}

static PciDevice *find(const char *root, const char *address, GError **error)
{
    PciDevice *device = pci_device_read(root, address);

    if (!device)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "%s: there is no such PCI device",
                    address);
    return device;
}

gboolean binding_to_vfio(const char *root, const char *address, GError **error)
{
    g_autoptr(PciDevice) device = find(root, address, error);

    if (!device || !set_override(device, VFIO_PCI, error))
        return FALSE;
    if (g_strcmp0(device->driver, VFIO_PCI) == 0)
        return TRUE;
    if (device->driver && !unbind(root, device, error))
        return FALSE;
    return write_bus(root, "drivers_probe", address, error) &&
           must_have_driver(root, address, TRUE, error);
}

gboolean binding_give_back(const char *root, const char *address, GError **error)
{
    g_autoptr(PciDevice) device = find(root, address, error);

    if (!device || !set_override(device, "", error))
        return FALSE;
    if (device->driver && !g_str_equal(device->driver, VFIO_PCI))
        return TRUE;
    if (device->driver && !unbind(root, device, error))
        return FALSE;
    return write_bus(root, "drivers_probe", address, error) &&
           must_have_driver(root, address, FALSE, error);
}

gboolean binding_load_vfio(const char *root, GError **error)
{
    static const char *const start[] = {"systemctl", "start", "modprobe@vfio_pci.service", NULL};
    g_autofree char *path = g_build_filename(root[0] ? root : "/", BUS, "drivers", VFIO_PCI, NULL);

    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return TRUE;
    if (!kernel_run(start, NULL, error))
        return FALSE;
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                "the kernel has no vfio-pci; is the module installed (modprobe vfio-pci)?");
    return FALSE;
}
