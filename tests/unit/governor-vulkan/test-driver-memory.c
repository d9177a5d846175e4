// SPDX-License-Identifier: MIT
/* What a driver takes for itself: of which driver it is believed, and how it is reckoned. The
 * driver, the member and the layer's counts are stand-ins. */
#include <glib.h>
#include <string.h>

#include "driver_memory.h"
#include "memory.h"

#define MIB (1024 * 1024ull)

static struct {
    uint32_t vendor;
    const char *name;
    bool has_budget;
    uint64_t usage[3];
    unsigned asked;
} driver;

static struct layer_slice slice;

static struct {
    uint64_t freed_meanwhile;
    uint64_t told;
    unsigned times;
} layer;

void governor_member_driver(GovernorMember *member, uint64_t bytes)
{
    (void)member;
    layer.told = bytes;
    layer.times++;
}

bool instance_has_extension(const struct layer_instance *instance, VkPhysicalDevice physical,
                            const char *name)
{
    (void)instance;
    (void)physical;
    return driver.has_budget && !strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical,
                                                 VkPhysicalDeviceProperties *properties)
{
    (void)physical;
    *properties = (VkPhysicalDeviceProperties){.vendorID = driver.vendor};
    g_strlcpy(properties->deviceName, driver.name, sizeof(properties->deviceName));
}

static VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice physical,
                                             VkPhysicalDeviceMemoryProperties2 *properties)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = properties->pNext;

    (void)physical;
    driver.asked++;
    memcpy(budget->heapUsage, driver.usage, sizeof(driver.usage));
    slice.heap_usage[0] -= layer.freed_meanwhile;
    layer.freed_meanwhile = 0;
}

static struct layer_instance driver_instance = {
    .next = {.GetPhysicalDeviceProperties = get_properties,
             .GetPhysicalDeviceMemoryProperties2 = get_memory}};

/* Two heaps of the device and one of the host. */
static struct layer_device device = {
    .instance = &driver_instance,
    .slice = &slice,
    .driver_tells = true,
    .memory = {.memoryHeapCount = 3,
               .memoryHeaps = {{1024 * MIB, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
                               {1024 * MIB, 0},
                               {256 * MIB, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}}},
};

static void reset(void)
{
    memset(&driver, 0, sizeof(driver));
    memset(&layer, 0, sizeof(layer));
    memset(slice.heap_usage, 0, sizeof(slice.heap_usage));
    slice.spilled = 0;
}

static bool is_told(uint32_t vendor, const char *name, bool has_budget)
{
    driver.vendor = vendor;
    driver.name = name;
    driver.has_budget = has_budget;
    return driver_memory_is_told(&driver_instance, NULL);
}

static void test_which_drivers(void)
{
    struct layer_instance old = {.next = {.GetPhysicalDeviceProperties = get_properties}};

    reset();
    g_assert_true(is_told(0x1002, "AMD Radeon RX 6800 XT (RADV NAVI21)", true));
    g_assert_false(driver_memory_is_told(&old, NULL));
    g_assert_false(is_told(0x1002, "AMD Radeon RX 6800 XT (RADV NAVI21)", false));
    g_assert_false(is_told(0x1002, "AMD Radeon RX 6800 XT", true));
    /* All that the machine uses; only what was requested; unknown. */
    g_assert_false(is_told(0x10005, "llvmpipe (LLVM 19.1.7, 256 bits)", true));
    g_assert_false(is_told(0x8086, "Intel(R) Arc(tm) A770 Graphics (DG2)", true));
    g_assert_false(is_told(0x10de, "NVIDIA H200", true));
}

/* After the time within which the driver is not asked again. */
static uint64_t look(void)
{
    g_usleep(110000);
    driver_memory_look(&device);
    return layer.told;
}

static void test_reckoning(void)
{
    reset();
    driver.usage[0] = 100 * MIB;
    driver.usage[1] = 500 * MIB;
    driver.usage[2] = 20 * MIB;
    slice.heap_usage[0] = 60 * MIB;
    slice.heap_usage[2] = 10 * MIB;
    g_assert_cmpuint(look(), ==, 50 * MIB);
    /* What is spilled may lie there too. */
    slice.spilled = 30 * MIB;
    g_assert_cmpuint(look(), ==, 20 * MIB);
    /* Freed after the driver has been asked. */
    slice.heap_usage[0] += 15 * MIB;
    layer.freed_meanwhile = 15 * MIB;
    g_assert_cmpuint(look(), ==, 5 * MIB);
    /* Less than was requested, and more than exists. */
    driver.usage[0] = 1;
    g_assert_cmpuint(look(), ==, 0);
    driver.usage[0] = 100 * MIB;
    g_assert_cmpuint(look(), ==, 20 * MIB);
    driver.usage[0] = UINT64_MAX;
    g_assert_cmpuint(look(), ==, 0);
}

/*
 * A program that allocates all the time does not query all the time; other drivers are not queried.
 */
static void test_seldom(void)
{
    struct layer_device other = device;

    reset();
    look();
    for (unsigned i = 0; i < 1000; i++)
        driver_memory_look(&device);
    g_assert_cmpuint(driver.asked, >=, 1);
    g_assert_cmpuint(driver.asked, <, 100);
    for (unsigned i = 0; i < 100; i++)
        driver_memory_look_now(&device);
    g_assert_cmpuint(driver.asked, >, 100);
    reset();
    other.driver_tells = false;
    g_usleep(110000);
    driver_memory_look(&other);
    driver_memory_look_now(&other);
    g_assert_cmpuint(driver.asked, ==, 0);
    g_assert_cmpuint(layer.times, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/driver-memory/which-drivers", test_which_drivers);
    g_test_add_func("/driver-memory/reckoning", test_reckoning);
    g_test_add_func("/driver-memory/seldom", test_seldom);
    return g_test_run();
}
