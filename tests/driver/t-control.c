/* SPDX-License-Identifier: MIT */
/* /dev/vgpu-control and the ledger: which GPUs, which types, how many vGPUs. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_test.h"
#include "mdev_host.h"

#define GPU       "soft:" TEST_GPU_PREFIX "0"
#define OTHER_GPU "soft:" TEST_GPU_PREFIX "1"

static struct vgpu_type_desc small_type(void)
{
    return mdev_type("small", 64 * MIB, 16 * MIB);
}

static void assert_available(const char *type, int expected)
{
    g_assert_cmpint(mdev_type_available(GPU, type), ==, expected);
}

static void test_node(void)
{
    struct stat st;

    g_assert_cmpint(stat("/dev/vgpu-control", &st), ==, 0);
    g_assert_true(S_ISCHR(st.st_mode));
    g_assert_cmpuint(st.st_uid, ==, 0);
    g_assert_cmpuint(st.st_mode & 0077, ==, 0);
}

static void test_add_remove(void)
{
    struct vgpu_type_desc type = small_type();

    for (int i = 0; i < 3; i++) {
        g_autofree char *dir = NULL;

        assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
        dir = mdev_type_dir(GPU, "small");
        g_assert_nonnull(dir);
        assert_ok(mdev_gpu_remove(GPU));
        g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
    }
}

static void test_add_twice(void)
{
    struct vgpu_type_desc type = small_type();

    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_fails(mdev_gpu_add(GPU, 256 * MIB, &type, 1), EEXIST);
    assert_available("small", 4);
    assert_ok(mdev_gpu_add(OTHER_GPU, 64 * MIB, &type, 1));
    assert_ok(mdev_gpu_remove(OTHER_GPU));
    assert_available("small", 4);
}

static void test_unknown(void)
{
    struct vgpu_type_desc type = small_type();

    assert_fails(mdev_gpu_remove(GPU), ENODEV);
    assert_fails(mdev_gpu_set_types(GPU, 64 * MIB, &type, 1), ENODEV);
    assert_fails(mdev_gpu_add("0000:ff:1f.7", 64 * MIB, &type, 1), ENODEV);
    assert_fails(mdev_gpu_remove("0000:ff:1f.7"), ENODEV);
}

static void test_bad_gpu_names(void)
{
    static const char *const names[] = {"",          "soft:",        "soft:../x",    "soft:a/b",
                                        "soft:a\nb", "soft: ",       "soft:.",       "soft:..",
                                        "hard:x",    "0000:00:1g.0", "0000:00:02.9", "zz"};
    struct vgpu_type_desc type = small_type();
    struct vgpu_control_gpu arg = {
        .argsz = sizeof(arg),
        .vram_bytes = 64 * MIB,
        .ntypes = 1,
        .type_size = sizeof(type),
        .types = (uintptr_t)&type,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        int ret = mdev_gpu_add(names[i], 64 * MIB, &type, 1);

        if (ret != -EINVAL && ret != -ENODEV)
            g_error("GPU name \"%s\": %s", names[i], g_strerror(-ret));
    }
    /* Not terminated. */
    memset(arg.gpu, 'a', sizeof(arg.gpu));
    memcpy(arg.gpu, GPU, strlen(GPU));
    assert_fails(mdev_control_ioctl(VGPU_CONTROL_ADD_GPU, &arg), EINVAL);
}

static void test_bad_type_names(void)
{
    static const char *const names[] = {"", "-a", ".a", "_a", "A", "a b", "a/b", "a\n", "\xc3\xa9"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        struct vgpu_type_desc type = mdev_type(names[i], 64 * MIB, 16 * MIB);

        assert_fails(mdev_gpu_add(GPU, 64 * MIB, &type, 1), EINVAL);
    }
    struct vgpu_type_desc type = small_type();
    memset(type.name, 'a', sizeof(type.name));
    assert_fails(mdev_gpu_add(GPU, 64 * MIB, &type, 1), EINVAL);
    type = small_type();
    memset(type.description, 'a', sizeof(type.description));
    assert_fails(mdev_gpu_add(GPU, 64 * MIB, &type, 1), EINVAL);
    type = small_type();
    strcpy(type.description, "two\nlines");
    assert_fails(mdev_gpu_add(GPU, 64 * MIB, &type, 1), EINVAL);
}

typedef void (*Spoil)(struct vgpu_type_desc *type);

static void spoil_vram(struct vgpu_type_desc *t)
{
    t->vram_bytes = 0;
}
static void spoil_window_zero(struct vgpu_type_desc *t)
{
    t->window_bytes = 0;
}
static void spoil_window_odd(struct vgpu_type_desc *t)
{
    t->window_bytes = 3 * MIB;
}
static void spoil_window_small(struct vgpu_type_desc *t)
{
    t->window_bytes = MIB / 2;
}
static void spoil_window_large(struct vgpu_type_desc *t)
{
    t->window_bytes = 1ull << 37;
}
static void spoil_weight_zero(struct vgpu_type_desc *t)
{
    t->weight = 0;
}
static void spoil_weight_large(struct vgpu_type_desc *t)
{
    t->weight = 10001;
}
static void spoil_cap_zero(struct vgpu_type_desc *t)
{
    t->cap = 0;
}
static void spoil_cap_large(struct vgpu_type_desc *t)
{
    t->cap = 101;
}
static void spoil_priority(struct vgpu_type_desc *t)
{
    t->priority = 16;
}
static void spoil_scanouts(struct vgpu_type_desc *t)
{
    t->scanouts = 2;
}
static void spoil_cuda(struct vgpu_type_desc *t)
{
    t->cuda = 2;
}

static void spoil_reserved(struct vgpu_type_desc *t)
{
    t->reserved[5] = 1;
}

static void test_bad_type_values(void)
{
    static const Spoil spoils[] = {
        spoil_vram,         spoil_window_zero, spoil_window_odd,   spoil_window_small,
        spoil_window_large, spoil_weight_zero, spoil_weight_large, spoil_cap_zero,
        spoil_cap_large,    spoil_priority,    spoil_scanouts,     spoil_cuda,
        spoil_reserved,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(spoils); i++) {
        struct vgpu_type_desc type = small_type();
        int ret;

        spoils[i](&type);
        ret = mdev_gpu_add(GPU, 256 * MIB, &type, 1);
        if (ret != -EINVAL)
            g_error("bad value %zu: %s", i, ret ? g_strerror(-ret) : "was taken");
    }
}

static void test_bad_control(void)
{
    struct vgpu_type_desc types[VGPU_MAX_TYPES + 1];
    const struct vgpu_control_gpu good = {
        .argsz = sizeof(good),
        .gpu = GPU,
        .vram_bytes = 256 * MIB,
        .ntypes = 1,
        .type_size = sizeof(types[0]),
        .types = (uintptr_t)types,
    };
    struct vgpu_control_gpu arg;

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *name = g_strdup_printf("t%zu", i);

        types[i] = mdev_type(name, 64 * MIB, 16 * MIB);
    }
#define REFUSED(change, error)                                                                     \
    do {                                                                                           \
        arg = good;                                                                                \
        change;                                                                                    \
        assert_fails(mdev_control_ioctl(VGPU_CONTROL_ADD_GPU, &arg), error);                       \
    } while (0)
    REFUSED(arg.argsz -= 8, EINVAL);
    REFUSED(arg.argsz = 0, EINVAL);
    REFUSED(arg.flags = 1, EINVAL);
    REFUSED(arg.reserved[3] = 1, EINVAL);
    REFUSED(arg.vram_bytes = 0, EINVAL);
    REFUSED(arg.ntypes = 0, EINVAL);
    REFUSED(arg.ntypes = VGPU_MAX_TYPES + 1, EINVAL);
    REFUSED(arg.type_size -= 4, EINVAL);
    REFUSED(arg.type_size = 0, EINVAL);
    REFUSED(arg.types = 0, EFAULT);
    strcpy(types[1].name, types[0].name);
    REFUSED(arg.ntypes = 2, EINVAL);
#undef REFUSED
    assert_fails(mdev_control_ioctl(_IO(VGPU_IOC_MAGIC, 0x0f), NULL), ENOTTY);
    strcpy(types[1].name, "t1");
    arg = good;
    arg.ntypes = VGPU_MAX_TYPES;
    assert_ok(mdev_control_ioctl(VGPU_CONTROL_ADD_GPU, &arg));
}

/* A PCI device of another class with a driver is no GPU. */
static void test_not_a_display(void)
{
    g_autoptr(GDir) dir = g_dir_open("/sys/bus/pci/devices", 0, NULL);
    struct vgpu_type_desc type = small_type();
    unsigned tried = 0;
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *driver = g_build_filename("/sys/bus/pci/devices", name, "driver", NULL);
        g_autofree char *path = g_build_filename("/sys/bus/pci/devices", name, "class", NULL);
        g_autofree char *class = NULL;

        if (!g_file_get_contents(path, &class, NULL, NULL) || g_str_has_prefix(class, "0x03"))
            continue;
        if (!g_file_test(driver, G_FILE_TEST_EXISTS))
            continue;
        assert_fails(mdev_gpu_add(name, 64 * MIB, &type, 1), ENOTTY);
        tried++;
    }
    if (!tried)
        driver_test_skip("no PCI device that has a driver and is no display");
}

static void test_type_attributes(void)
{
    struct vgpu_type_desc type = small_type();
    g_autofree char *api = NULL;
    g_autofree char *description = NULL;

    strcpy(type.description, "what an operator reads");
    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    api = mdev_type_attr(GPU, "small", "device_api");
    description = mdev_type_attr(GPU, "small", "description");
    g_assert_cmpstr(api, ==, "vfio-pci");
    g_assert_nonnull(description);
    g_assert_nonnull(strstr(description, "what an operator reads"));
    g_assert_nonnull(strstr(description, " num_heads=0 framebuffer=64M max_instance=4"));
}

static void test_ledger(void)
{
    struct vgpu_type_desc types[] = {
        mdev_type("small", 64 * MIB, 16 * MIB),
        mdev_type("large", 128 * MIB, 16 * MIB),
    };
    g_autofree char *a = mdev_uuid_new();
    g_autofree char *b = mdev_uuid_new();
    g_autofree char *c = mdev_uuid_new();

    assert_ok(mdev_gpu_add(GPU, 200 * MIB, types, 2));
    assert_available("small", 3);
    assert_available("large", 1);
    assert_ok(mdev_create(GPU, "large", a));
    assert_available("small", 1);
    assert_available("large", 0);
    assert_fails(mdev_create(GPU, "large", b), ENOSPC);
    g_assert_false(mdev_exists(b));
    assert_ok(mdev_create(GPU, "small", b));
    assert_available("small", 0);
    assert_fails(mdev_create(GPU, "small", c), ENOSPC);
    assert_fails(mdev_create(GPU, "small", a), EEXIST);
    assert_ok(mdev_remove(a));
    assert_available("small", 2);
    assert_available("large", 1);
    assert_ok(mdev_remove(b));
    assert_available("small", 3);
}

/*
 * A vGPU is admitted with the memory that was announced for it, once, and mdevctl, which looks at
 * available_instances, sees that there is room. Others get their type's.
 */
static void test_announced(void)
{
    struct vgpu_type_desc types[] = {
        mdev_type("small", 64 * MIB, 16 * MIB),
        mdev_type("large", 128 * MIB, 16 * MIB),
    };
    g_autofree char *a = mdev_uuid_new();
    g_autofree char *b = mdev_uuid_new();
    g_autofree char *c = mdev_uuid_new();

    assert_ok(mdev_gpu_add(GPU, 200 * MIB, types, 2));
    assert_ok(mdev_announce(GPU, "large", a, 30 * MIB));
    assert_available("large", 1);
    assert_ok(mdev_create(GPU, "large", a));
    g_assert_cmpuint(mdev_attr_u64(a, "vgpu/vram_bytes"), ==, 30 * MIB);
    assert_ok(mdev_create(GPU, "large", b));
    g_assert_cmpuint(mdev_attr_u64(b, "vgpu/vram_bytes"), ==, 128 * MIB);

    /* 42 MiB are left. */
    assert_available("large", 0);
    assert_fails(mdev_create(GPU, "large", c), ENOSPC);
    assert_ok(mdev_announce(GPU, "large", c, 43 * MIB));
    assert_available("large", 0);
    assert_fails(mdev_create(GPU, "large", c), ENOSPC);
    assert_ok(mdev_announce(GPU, "large", c, 42 * MIB));
    assert_available("large", 1);
    assert_available("small", 0);
    assert_ok(mdev_create(GPU, "large", c));
    assert_available("large", 0);

    /* Each counts once, and not for those that are not made. */
    assert_ok(mdev_remove(c));
    assert_fails(mdev_create(GPU, "large", c), ENOSPC);
    assert_ok(mdev_announce(GPU, "large", c, 10 * MIB));
    assert_ok(mdev_announce(GPU, "large", c, 0));
    assert_available("large", 0);
    assert_fails(mdev_create(GPU, "large", c), ENOSPC);
    g_assert_false(mdev_exists(c));
}

static void test_announced_bounds(void)
{
    struct vgpu_type_desc type = small_type();
    g_autofree char *a = mdev_uuid_new();
    g_autofree char *b = mdev_uuid_new();

    assert_fails(mdev_announce(GPU, "small", a, MIB), ENODEV);
    type.max_instances = 1;
    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_fails(mdev_announce(GPU, "other", a, MIB), ENOENT);
    assert_fails(mdev_announce(GPU, "small", a, 257 * MIB), ENOSPC);
    assert_ok(mdev_announce(GPU, "small", a, 256 * MIB));
    assert_ok(mdev_create(GPU, "small", a));
    g_assert_cmpuint(mdev_attr_u64(a, "vgpu/vram_bytes"), ==, 256 * MIB);
    assert_ok(mdev_announce(GPU, "small", b, MIB));
    assert_fails(mdev_create(GPU, "small", b), ENOSPC);
    assert_ok(mdev_remove(a));
    /* With a drained GPU, and with one that is registered again, it means nothing. */
    assert_ok(mdev_announce(GPU, "small", b, MIB));
    assert_ok(mdev_gpu_drain(GPU, true));
    assert_available("small", 0);
    assert_ok(mdev_gpu_remove(GPU));
    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_ok(mdev_create(GPU, "small", b));
    g_assert_cmpuint(mdev_attr_u64(b, "vgpu/vram_bytes"), ==, 64 * MIB);
}

static void test_max_instances(void)
{
    struct vgpu_type_desc type = small_type();
    g_autofree char *a = mdev_uuid_new();
    g_autofree char *b = mdev_uuid_new();
    g_autofree char *c = mdev_uuid_new();
    g_autofree char *description = NULL;

    type.max_instances = 2;
    assert_ok(mdev_gpu_add(GPU, 1024 * MIB, &type, 1));
    assert_available("small", 2);
    assert_ok(mdev_create(GPU, "small", a));
    assert_ok(mdev_create(GPU, "small", b));
    assert_available("small", 0);
    assert_fails(mdev_create(GPU, "small", c), ENOSPC);
    description = mdev_type_attr(GPU, "small", "description");
    g_assert_nonnull(strstr(description, " max_instance=2"));
    assert_ok(mdev_remove(a));
    assert_available("small", 1);
}

static void test_remove_busy(void)
{
    struct vgpu_type_desc type = small_type();
    g_autofree char *uuid = mdev_uuid_new();

    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_ok(mdev_create(GPU, "small", uuid));
    assert_fails(mdev_gpu_remove(GPU), EBUSY);
    g_assert_true(mdev_exists(uuid));
    assert_available("small", 3);
    assert_ok(mdev_remove(uuid));
    assert_ok(mdev_gpu_remove(GPU));
}

static void test_set_types_in_place(void)
{
    struct vgpu_type_desc types[] = {
        mdev_type("small", 64 * MIB, 16 * MIB),
        mdev_type("large", 128 * MIB, 16 * MIB),
    };
    struct vgpu_type_desc swapped[2];
    g_autofree char *uuid = mdev_uuid_new();
    g_autofree char *second = mdev_uuid_new();

    assert_ok(mdev_gpu_add(GPU, 256 * MIB, types, 2));
    assert_ok(mdev_create(GPU, "small", uuid));

    swapped[0] = types[1];
    swapped[1] = types[0];
    swapped[1].vram_bytes = 32 * MIB;
    swapped[1].weight = 77;
    assert_ok(mdev_gpu_set_types(GPU, 128 * MIB, swapped, 2));
    /* Running vGPUs keep their promises: 64 of 128 MiB. */
    g_assert_cmpuint(mdev_attr_u64(uuid, "vgpu/vram_bytes"), ==, 64 * MIB);
    g_assert_cmpuint(mdev_attr_u64(uuid, "vgpu/weight"), ==, 100);
    assert_available("small", 2);
    assert_available("large", 0);
    assert_ok(mdev_create(GPU, "small", second));
    g_assert_cmpuint(mdev_attr_u64(second, "vgpu/vram_bytes"), ==, 32 * MIB);
    g_assert_cmpuint(mdev_attr_u64(second, "vgpu/weight"), ==, 77);

    /* Less than the promises: nothing changes. */
    swapped[1].weight = 55;
    assert_fails(mdev_gpu_set_types(GPU, 95 * MIB, swapped, 2), ENOSPC);
    assert_ok(mdev_remove(second));
    assert_ok(mdev_create(GPU, "small", second));
    g_assert_cmpuint(mdev_attr_u64(second, "vgpu/weight"), ==, 77);
}

/* A vGPU that was made before its type had CUDA has none, and keeps its window. */
static void test_set_types_cuda(void)
{
    struct vgpu_type_desc type = small_type();
    g_autofree char *before = mdev_uuid_new();
    g_autofree char *after = mdev_uuid_new();
    g_autofree char *description = NULL;

    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_ok(mdev_create(GPU, "small", before));
    type.cuda = 1;
    type.window_bytes = 4096 * MIB;
    assert_ok(mdev_gpu_set_types(GPU, 256 * MIB, &type, 1));
    description = mdev_type_attr(GPU, "small", "description");
    g_assert_true(g_str_has_suffix(description, " cuda"));
    assert_ok(mdev_create(GPU, "small", after));
    g_assert_cmpuint(mdev_attr_u64(before, "vgpu/cuda"), ==, 0);
    g_assert_cmpuint(mdev_attr_u64(before, "vgpu/window_bytes"), ==, 16 * MIB);
    g_assert_cmpuint(mdev_attr_u64(after, "vgpu/cuda"), ==, 1);
    g_assert_cmpuint(mdev_attr_u64(after, "vgpu/window_bytes"), ==, 4096 * MIB);
}

static void test_set_types_renames(void)
{
    struct vgpu_type_desc type = small_type();
    struct vgpu_type_desc other = mdev_type("other", 32 * MIB, 16 * MIB);
    g_autofree char *uuid = mdev_uuid_new();

    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_ok(mdev_create(GPU, "small", uuid));
    assert_fails(mdev_gpu_set_types(GPU, 256 * MIB, &other, 1), EBUSY);
    assert_available("small", 3);
    assert_ok(mdev_remove(uuid));
    assert_ok(mdev_gpu_set_types(GPU, 256 * MIB, &other, 1));
    assert_available("other", 8);
    g_assert_cmpint(mdev_type_available(GPU, "small"), ==, -ENOENT);
}

#define RACERS        8
#define RACE_CAPACITY 3
#define RACE_ROUNDS   2

static void race_calls(void)
{
    int status, won = 0;

    for (int i = 0; i < RACERS; i++) {
        if (fork() == 0) {
            g_autofree char *uuid = mdev_uuid_new();
            int ret = mdev_create(GPU, "small", uuid);

            if (ret && ret != -ENOSPC)
                g_printerr("create: %s\n", g_strerror(-ret));
            _exit(ret == 0 ? 1 : ret == -ENOSPC ? 0 : 2);
        }
    }
    while (wait(&status) > 0) {
        g_assert_true(WIFEXITED(status));
        g_assert_cmpint(WEXITSTATUS(status), <, 2);
        won += WEXITSTATUS(status);
    }
    g_assert_cmpint(won, ==, RACE_CAPACITY);
}

static void test_create_race(void)
{
    struct vgpu_type_desc type = small_type();

    for (int i = 0; i < RACE_ROUNDS; i++) {
        assert_ok(mdev_gpu_add(GPU, RACE_CAPACITY * 64 * MIB + MIB, &type, 1));
        race_calls();
        assert_available("small", 0);
        assert_ok(mdev_host_cleanup(TEST_GPU_PREFIX));
    }
}

/* GPUs are added and removed while others create and remove vGPUs on them. */
static void test_churn(void)
{
    struct vgpu_type_desc type = small_type();
    int64_t end = now_ms() + 4000;

    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            while (now_ms() < end) {
                g_autofree char *uuid = mdev_uuid_new();

                if (i < 2) {
                    mdev_gpu_add(GPU, 256 * MIB, &type, 1);
                    mdev_gpu_remove(GPU);
                } else if (!mdev_create(GPU, "small", uuid)) {
                    mdev_remove(uuid);
                }
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    mdev_host_cleanup(TEST_GPU_PREFIX);
    assert_ok(mdev_gpu_add(GPU, 256 * MIB, &type, 1));
    assert_available("small", 4);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/control/node", test_node);
    driver_test_add("/control/add-remove", test_add_remove);
    driver_test_add("/control/add-twice", test_add_twice);
    driver_test_add("/control/unknown", test_unknown);
    driver_test_add("/control/bad-gpu-names", test_bad_gpu_names);
    driver_test_add("/control/bad-type-names", test_bad_type_names);
    driver_test_add("/control/bad-type-values", test_bad_type_values);
    driver_test_add("/control/bad-control", test_bad_control);
    driver_test_add("/control/not-a-display", test_not_a_display);
    driver_test_add("/control/type-attributes", test_type_attributes);
    driver_test_add("/control/ledger", test_ledger);
    driver_test_add("/control/announced", test_announced);
    driver_test_add("/control/announced-bounds", test_announced_bounds);
    driver_test_add("/control/max-instances", test_max_instances);
    driver_test_add("/control/remove-busy", test_remove_busy);
    driver_test_add("/control/set-types-in-place", test_set_types_in_place);
    driver_test_add("/control/set-types-cuda", test_set_types_cuda);
    driver_test_add("/control/set-types-renames", test_set_types_renames);
    driver_test_add("/control/create-race", test_create_race);
    driver_test_add("/control/churn", test_churn);
    return driver_test_run();
}
