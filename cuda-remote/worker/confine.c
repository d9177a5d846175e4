// SPDX-License-Identifier: MIT
/*
 * What a worker that its program has taken over can still do. It has the user, the devices, the
 * system calls and the files of its guard's unit. From here on it also runs no program, makes and
 * changes no file but those of the slice's compiled code, and writes to no node but NVIDIA's.
 */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_FILES 4096u /* memory that it shares with its program is none */
#define MOST_CARDS 256u

#define MAKING                                                                                     \
    (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |    \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM)
#define REMOVING (LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE)

/* As far as the kernel knows it. */
static uint64_t denied_by(int abi)
{
    uint64_t denied =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | MAKING | REMOVING;

    if (abi >= 2)
        denied |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        denied |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (abi >= 5)
        denied |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
    return denied;
}

/* A node that is missing, or that the guard may not have either, needs no permission. */
static bool allow_node(int ruleset, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = access, .parent_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC)};
    bool ok;

    if (rule.parent_fd < 0)
        return errno == ENOENT || errno == EACCES;
    ok = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return ok;
}

/* Of the cards, the guard's own rules allow the slice's alone. */
static bool allow_nodes(int ruleset, uint64_t access)
{
    static const char *const names[] = {"/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm"};
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++)
        ok = allow_node(ruleset, names[i], access);
    for (unsigned int i = 0; ok && i < MOST_CARDS; i++) {
        char path[32];

        snprintf(path, sizeof(path), "/dev/nvidia%u", i);
        ok = allow_node(ruleset, path, access);
    }
    return ok;
}

/* The driver keeps code there that it has compiled, for the slice's next programs. */
static bool allow_cache(int ruleset, uint64_t handled)
{
    const uint64_t access = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
                            LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | REMOVING;
    const char *path = getenv("CUDA_CACHE_PATH");

    return !path || allow_node(ruleset, path, handled & access);
}

static bool enter_domain(void)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr attr = {.handled_access_fs = denied_by(abi)};
    uint64_t access =
        attr.handled_access_fs & (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_IOCTL_DEV);
    int ruleset;
    bool ok;

    if (abi < 1)
        return false;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return false;
    ok = allow_nodes(ruleset, access) && allow_cache(ruleset, attr.handled_access_fs) &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return ok;
}

bool worker_confine(void)
{
    const struct rlimit files = {MOST_FILES, MOST_FILES}, none = {0, 0};

    /* Other workers of the slice have the same user, and must not read this one through /proc. */
    if (prctl(PR_SET_DUMPABLE, 0) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0 &&
        setrlimit(RLIMIT_CORE, &none) == 0 && enter_domain())
        return true;
    worker_say("cannot confine itself: %s; the kernel needs Landlock (lsm=landlock,...)",
               strerror(errno));
    return false;
}
