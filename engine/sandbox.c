// SPDX-License-Identifier: MIT
#include "sandbox.h"

#include "exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACCESS_READ    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_PROGRAM (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE)
#define ACCESS_DEVICE                                                                              \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

#define ACCESS_CACHE                                                                               \
    (ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |                   \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |  \
     LANDLOCK_ACCESS_FS_REMOVE_DIR)

/* All of ABI 5; rights that only newer kernels know are not restricted. */
#define ACCESS_ALL (LANDLOCK_ACCESS_FS_IOCTL_DEV * 2 - 1)

/* Allowed on a file; the others are for directories and Landlock refuses them here. */
#define ACCESS_FILE                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |   \
     LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

struct sandbox_path {
    const char *path;
    uint64_t access;
};

static const struct sandbox_path system_paths[] = {
    /* Libraries are mapped, which requires only reading. */
    {"/usr", ACCESS_READ},
    {"/lib", ACCESS_READ},
    {"/lib64", ACCESS_READ},
    /* The only program that is run, at the distributions' paths. */
    {"/usr/libexec/virgl_render_server", ACCESS_PROGRAM},
    {"/usr/lib/virgl_render_server", ACCESS_PROGRAM},
    {"/etc/ld.so.cache", ACCESS_READ},
    {"/etc/ld.so.preload", ACCESS_READ},
    {"/etc/glvnd", ACCESS_READ},
    {"/etc/vulkan", ACCESS_READ},
    {"/etc/drirc", ACCESS_READ},
    {"/etc/localtime", ACCESS_READ},
    {"/etc/OpenCL", ACCESS_READ},
    /* By these, libdrm and the drivers identify a device node. */
    {"/sys", ACCESS_READ},
    /* Of this process, the CPUs, and NVIDIA's parameters. The unit hides other processes. */
    {"/proc", ACCESS_READ},
    {"/dev/dri", LANDLOCK_ACCESS_FS_READ_DIR},
    {"/dev/null", ACCESS_DEVICE},
    {"/dev/zero", ACCESS_DEVICE},
    {"/dev/urandom", LANDLOCK_ACCESS_FS_READ_FILE},
};

static const char *own_program; /* beside those; NULL: none */

void sandbox_allow_program(const char *path)
{
    own_program = path;
}

/* What renderers, loaders and systemd's protocol use. */
static const char *const kept_variables[] = {
    "PATH", "LANG", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", NULL,
};

static const char *const set_variables[][2] = {
    /* Unless shader_cache_use() allows one: it would be another tenant's input. */
    {"MESA_SHADER_CACHE_DISABLE", "true"},
    {"__GL_SHADER_DISK_CACHE", "0"},
    /*
     * Mesa's layer that orders devices by preference: there is one device, and it has been chosen.
     */
    {"NODEVICE_SELECT", "1"},
    /*
     * Mesa's drivers leave thread-local destructors behind, which run when a worker's ring thread
     * ends, after the loader has unloaded them: the worker would crash at every guest's exit.
     */
    {"VK_LOADER_DISABLE_DYNAMIC_LIBRARY_UNLOADING", "1"},
};

void sandbox_clean_environment(const char *const *extra)
{
    g_auto(GStrv) names = g_listenv();

    for (char **name = names; *name; name++) {
        if (!g_strv_contains(kept_variables, *name))
            g_unsetenv(*name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(set_variables); i++)
        g_setenv(set_variables[i][0], set_variables[i][1], TRUE);
    for (; extra && *extra; extra++) {
        g_auto(GStrv) pair = g_strsplit(*extra, "=", 2);

        if (pair[0] && pair[1])
            g_setenv(pair[0], pair[1], TRUE);
    }
}

static uint64_t handled_access(int abi)
{
    uint64_t access = ACCESS_ALL;

    if (abi < 5)
        access &= ~(uint64_t)LANDLOCK_ACCESS_FS_IOCTL_DEV;
    if (abi < 3)
        access &= ~(uint64_t)LANDLOCK_ACCESS_FS_TRUNCATE;
    if (abi < 2)
        access &= ~(uint64_t)LANDLOCK_ACCESS_FS_REFER;
    return access;
}

static bool add_path(int ruleset, const char *path, uint64_t access, GError **error)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    struct stat st;
    int saved;
    int ret;

    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0) {
        if (errno == ENOENT || errno == EACCES || errno == ENOTDIR)
            return true; /* a missing path needs no permission */
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_SANDBOX, "cannot open %s: %s", path,
                    g_strerror(errno));
        return false;
    }
    if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed_access &= ACCESS_FILE;

    ret = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    saved = errno;
    close(rule.parent_fd);
    if (ret < 0) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_SANDBOX, "Landlock refuses %s: %s", path,
                    g_strerror(saved));
        return false;
    }
    return true;
}

static int find_loader(struct dl_phdr_info *info, size_t size G_GNUC_UNUSED, void *loader)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            *(const char **)loader = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return 1; /* the first object is this program */
}

static bool add_paths(int ruleset, uint64_t handled, const char *const *nodes,
                      const char *shader_cache, GError **error)
{
    const char *loader = NULL;

    /* Without its loader the render server cannot be run. It is the loader of this program. */
    dl_iterate_phdr(find_loader, &loader);
    if (loader && !add_path(ruleset, loader, ACCESS_PROGRAM & handled, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(system_paths); i++) {
        if (!add_path(ruleset, system_paths[i].path, system_paths[i].access & handled, error))
            return false;
    }
    if (own_program && !add_path(ruleset, own_program, ACCESS_PROGRAM & handled, error))
        return false;
    for (; *nodes; nodes++) {
        if (!add_path(ruleset, *nodes, ACCESS_DEVICE & handled, error))
            return false;
    }
    return !shader_cache || add_path(ruleset, shader_cache, ACCESS_CACHE & handled, error);
}

static bool restrict_self(int ruleset, GError **error)
{
    /* Not dumpable: workers have the same user, and must not read this process through /proc. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        syscall(SYS_landlock_restrict_self, ruleset, 0) == 0)
        return true;

    g_set_error(error, ENGINE_ERROR, EXIT_CODE_SANDBOX, "cannot enter the Landlock sandbox: %s",
                g_strerror(errno));
    return false;
}

bool sandbox_enter(const char *const *nodes, const char *shader_cache, GError **error)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr attr = {0};
    int ruleset;
    bool ok;

    if (abi < 1) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_SANDBOX,
                    "this kernel has no Landlock (%s): enable it (lsm=landlock,...) or, knowing "
                    "that the engine can then reach other GPUs, give --no-landlock",
                    g_strerror(errno));
        return false;
    }
    attr.handled_access_fs = handled_access(abi);
    if (abi >= 4)
        attr.handled_access_net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
    if (abi >= 6)
        attr.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;

    /* Older kernels accept a longer structure if the part unknown to them is zero. */
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0) {
        g_set_error(error, ENGINE_ERROR, EXIT_CODE_SANDBOX, "cannot make a Landlock ruleset: %s",
                    g_strerror(errno));
        return false;
    }
    ok = add_paths(ruleset, attr.handled_access_fs, nodes, shader_cache, error) &&
         restrict_self(ruleset, error);
    close(ruleset);
    return ok;
}
