// SPDX-License-Identifier: MIT
/* Which slice a physical device is of, and which sockets a process joins. The driver and the
 * process are stand-ins. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "physical.h"
#include "sockets.h"

static struct {
    VkPhysicalDeviceType type;
    VkDriverId driver;
    bool has_render;
    bool has_pci;
    uint32_t bus;
    bool required;
    unsigned asked;
} host;

const void *chain_find(const void *chain, VkStructureType type)
{
    for (const VkBaseInStructure *in = chain; in; in = in->pNext) {
        if (in->sType == type)
            return in;
    }
    return NULL;
}

bool process_slices_are_required(void)
{
    return host.required;
}

bool instance_has_extension(const struct layer_instance *instance, VkPhysicalDevice physical,
                            const char *name)
{
    (void)instance;
    (void)physical;
    return host.has_pci || strcmp(name, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME) != 0;
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical,
                                                 VkPhysicalDeviceProperties *properties)
{
    (void)physical;
    *properties = (VkPhysicalDeviceProperties){.deviceType = host.type, .deviceName = "A GPU"};
}

static VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical,
                                                  VkPhysicalDeviceProperties2 *properties)
{
    (void)physical;
    host.asked++;
    for (VkBaseOutStructure *out = properties->pNext; out; out = out->pNext) {
        VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (void *)out;

        if (out->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) {
            pci->pciDomain = 0;
            pci->pciBus = host.bus;
            pci->pciDevice = 0x1f;
            pci->pciFunction = 7;
        } else if (out->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT) {
            ((VkPhysicalDeviceDrmPropertiesEXT *)out)->hasRender = host.has_render;
        } else {
            ((VkPhysicalDeviceDriverProperties *)out)->driverID = host.driver;
        }
    }
}

static struct layer_slice outside = {.gpu = (char *)""};
static struct layer_slice soft = {.gpu = (char *)"soft:a", .next = &outside};
static struct layer_slice second = {.gpu = (char *)"0000:82:1f.7", .next = &soft};
static struct layer_slice first = {.gpu = (char *)"0000:02:1f.7", .next = &second};
static struct layer_slice all = {.gpu = NULL};

static struct layer_slice *chosen(struct layer_slice *slices, const char *address, bool is_cpu,
                                  bool is_socket)
{
    struct physical_place place = {.is_cpu = is_cpu, .is_socket = is_socket};

    g_strlcpy(place.address, address, sizeof(place.address));
    return physical_choose(slices, &place);
}

static void test_choice(void)
{
    struct layer_slice hard = {.gpu = (char *)"0000:01:00.0", .next = &outside};

    g_assert_true(chosen(&first, "0000:02:1f.7", false, false) == &first);
    g_assert_true(chosen(&first, "0000:82:1f.7", false, false) == &second);
    g_assert_null(chosen(&first, "0000:03:00.0", false, false));
    g_assert_true(chosen(&first, "", true, false) == &soft);
    g_assert_true(chosen(&hard, "", true, false) == &outside);
    /* A driver that does not report it: unambiguous if there is one GPU. */
    g_assert_null(chosen(&first, "", false, false));
    g_assert_true(chosen(&second, "", false, false) == &second);
    g_assert_true(chosen(&hard, "", false, false) == &hard);
    g_assert_null(chosen(&soft, "", false, false));
    /* Its guard is a member for it, wherever it is. */
    g_assert_true(chosen(&first, "0000:02:1f.7", false, true) == &outside);
    g_assert_true(chosen(&first, "", false, true) == &outside);
    /* One socket is for whatever there is. */
    g_assert_true(chosen(&all, "0000:03:00.0", false, false) == &all);
    g_assert_true(chosen(&all, "", true, false) == &all);
}

static void open_instance(struct layer_instance *instance, struct layer_slice *slices)
{
    *instance = (struct layer_instance){.slices = slices,
                                        .next = {.GetPhysicalDeviceProperties = get_properties,
                                                 .GetPhysicalDeviceProperties2 = get_properties2}};
    pthread_mutex_init(&instance->lock, NULL);
    memset(&host, 0, sizeof(host));
    host.has_render = true;
    host.has_pci = true;
    host.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    host.required = true;
}

static VkPhysicalDevice handle(guint number)
{
    return (VkPhysicalDevice)(gsize)(number + 1);
}

/* The driver's description of itself; it is queried once for each. */
static void test_driver(void)
{
    struct layer_instance instance;

    open_instance(&instance, &first);
    host.bus = 0x82;
    g_assert_true(physical_slice(&instance, handle(0)) == &second);
    host.bus = 2;
    g_assert_true(physical_slice(&instance, handle(1)) == &first);
    g_assert_true(physical_slice(&instance, handle(0)) == &second);
    g_assert_cmpuint(host.asked, ==, 2);
    host.driver = VK_DRIVER_ID_MESA_VENUS;
    g_assert_true(physical_slice(&instance, handle(2)) == &first);
    host.has_render = false;
    g_assert_true(physical_slice(&instance, handle(3)) == &outside);
    host.has_pci = false;
    g_assert_true(physical_slice(&instance, handle(4)) == &outside);
    host.driver = VK_DRIVER_ID_MESA_LLVMPIPE;
    host.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
    g_assert_true(physical_slice(&instance, handle(5)) == &soft);
    /* An instance of Vulkan 1.0. */
    instance.next.GetPhysicalDeviceProperties2 = NULL;
    host.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    g_assert_null(physical_slice(&instance, handle(6)));
    physical_forget(&instance);
}

static void test_devices(void)
{
    struct layer_instance instance;
    VkPhysicalDevice both[] = {handle(0), handle(1)};
    VkDeviceGroupDeviceCreateInfo group = {.sType =
                                               VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO,
                                           .physicalDeviceCount = 2,
                                           .pPhysicalDevices = both};
    VkDeviceCreateInfo alone = {0};
    VkDeviceCreateInfo grouped = {.pNext = &group};

    open_instance(&instance, &first);
    host.bus = 2;
    g_assert_true(physical_slice_of_device(&instance, handle(0), &alone) == &first);
    host.bus = 0x82;
    g_assert_null(physical_slice_of_device(&instance, handle(0), &grouped));
    both[1] = handle(0);
    g_assert_true(physical_slice_of_device(&instance, handle(0), &grouped) == &first);
    host.bus = 3;
    g_assert_null(physical_slice_of_device(&instance, handle(2), &alone));
    host.required = false;
    g_assert_true(physical_slice_of_device(&instance, handle(3), &alone) == &outside);
    physical_forget(&instance);
}

static bool note(const char *gpu, const char *path, void *data)
{
    g_autofree char *below = g_strdup_printf("/%s/", gpu);

    g_string_append_printf(data, "%s\n", strstr(path, below) + 1);
    return strcmp(gpu, "c") != 0;
}

static char *make(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, "", -1, NULL));
    return g_steal_pointer(&path);
}

static void test_sockets(void)
{
    g_autofree char *dir = g_dir_make_tmp("slices-XXXXXX", NULL);
    g_autoptr(GString) found = g_string_new(NULL);
    static const char *const names[] = {
        "b/2/governor.sock", "b/1/governor.sock", "a/9/x", "a/A/governor.sock", "c/1/x", "d/1/x"};
    g_autofree char *remove = g_strdup_printf("rm -rf %s", dir);

    g_assert_false(governor_sockets_each(dir, note, found));
    g_assert_cmpint(errno, ==, ENOENT);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        g_free(make(dir, names[i]));
    g_assert_false(governor_sockets_each(dir, note, found));
    g_assert_cmpstr(found->str, ==, "a/A/governor.sock\nb/1/governor.sock\nc/1/governor.sock\n");
    g_assert_true(g_spawn_command_line_sync(remove, NULL, NULL, NULL, NULL));
    g_assert_false(governor_sockets_each(dir, note, found));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/physical/choice", test_choice);
    g_test_add_func("/physical/driver", test_driver);
    g_test_add_func("/physical/devices", test_devices);
    g_test_add_func("/physical/sockets", test_sockets);
    return g_test_run();
}
