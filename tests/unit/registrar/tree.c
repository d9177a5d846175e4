/* SPDX-License-Identifier: MIT */
#include "tests/unit/registrar/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/control.h"
#include "mdev-driver/registrar/commands.h"
#include "tests/unit/file_tree.h"

FakeDriver fake_driver;

int control_call(int fd, unsigned long request, void *argument)
{
    g_assert_cmpint(fd, >=, 0);
    fake_driver.calls++;
    fake_driver.request = request;
    if (request == VGPU_CONTROL_REMOVE_GPU) {
        const struct vgpu_control_remove *remove = argument;

        g_assert_cmpuint(remove->argsz, ==, sizeof(*remove));
        g_strlcpy(fake_driver.removed, remove->gpu, sizeof(fake_driver.removed));
    } else if (request == VGPU_CONTROL_DRAIN_GPU) {
        fake_driver.drained = *(const struct vgpu_control_drain *)argument;
        g_assert_cmpuint(fake_driver.drained.argsz, ==, sizeof(fake_driver.drained));
    } else {
        fake_driver.gpu = *(const struct vgpu_control_gpu *)argument;
        g_assert_cmpuint(fake_driver.gpu.argsz, ==, sizeof(fake_driver.gpu));
        g_assert_cmpuint(fake_driver.gpu.type_size, ==, sizeof(fake_driver.types[0]));
        g_assert_cmpuint(fake_driver.gpu.ntypes, <=, VGPU_MAX_TYPES);
        memcpy(fake_driver.types, (const void *)(guintptr)fake_driver.gpu.types,
               fake_driver.gpu.ntypes * sizeof(fake_driver.types[0]));
    }
    for (guint i = 0; fake_driver.is_older && i < fake_driver.gpu.ntypes; i++)
        fake_driver.fail = fake_driver.types[i].cuda ? EINVAL : 0;
    errno = fake_driver.fail;
    return fake_driver.fail ? -1 : 0;
}

Tree *tree_new(void)
{
    Tree *tree = g_new0(Tree, 1);

    tree->root = file_tree_new();
    fake_driver = (FakeDriver){0};
    return tree;
}

void tree_free(Tree *tree)
{
    file_tree_free(tree->root);
    free(tree->out);
    free(tree->log);
    g_free(tree);
}

void tree_write(Tree *tree, const char *path, const char *text)
{
    file_tree_write(tree->root, path, text);
}

void tree_link(Tree *tree, const char *path, const char *target)
{
    file_tree_link(tree->root, path, target);
}

void tree_pci_gpu(Tree *tree, const char *address, const char *driver, const char *resource)
{
    g_autofree char *dir = g_strconcat("/sys/bus/pci/devices/", address, NULL);
    const char *const files[][2] = {
        {"class", "0x030000\n"},
        {"vendor", "0x1002\n"},
        {"device", "0x73bf\n"},
        {"resource", resource},
    };

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(dir, files[i][0], NULL);

        tree_write(tree, path, files[i][1]);
    }
    if (driver) {
        g_autofree char *path = g_build_filename(dir, "driver", NULL);
        g_autofree char *target = g_strconcat("../../../../bus/pci/drivers/", driver, NULL);

        tree_link(tree, path, target);
    }
}

void tree_mdev_type(Tree *tree, const char *parent, const char *type, const char *uuids)
{
    g_autofree char *dir =
        g_strdup_printf("/sys/class/mdev_bus/%s/mdev_supported_types/%s", parent, type);
    g_autofree char *available = g_build_filename(dir, "available_instances", NULL);
    g_autofree char *description = g_build_filename(dir, "description", NULL);
    g_auto(GStrv) list = g_strsplit(uuids, " ", -1);

    tree_write(tree, available, "3\n");
    tree_write(tree, description, "A test's type\n");
    for (guint i = 0; list[i]; i++) {
        g_autofree char *device = g_build_filename(dir, "devices", list[i], NULL);

        if (*list[i])
            tree_link(tree, device, "nowhere");
    }
}

int tree_run(Tree *tree, const char *command, const char *gpu)
{
    size_t out_size, log_size;
    Session session = {.root = tree->root, .gpu = gpu};
    int result;

    free(tree->out);
    free(tree->log);
    session.out = open_memstream(&tree->out, &out_size);
    session.log = open_memstream(&tree->log, &log_size);
    result = command_find(command)->run(&session);
    fclose(session.out);
    fclose(session.log);
    return result;
}
