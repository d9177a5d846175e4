// SPDX-License-Identifier: MIT
/*
 * Tries from inside an engine's sandbox what must be refused there, and says what is allowed; TAP
 * on standard error, which is the journal's.
 *
 *   sandbox-probe --outside      as root, outside: every attempt must get through, or it tests
 * nothing sandbox-probe --engine       in the unit, in the engine's place: enters the sandbox as
 * the engine does sandbox-probe --guard GPU    the same in a guard's place virgl_render_server ...
 * under the render server's name: what both start; it forks a worker
 */
#include "attempts.h"
#include "device.h"
#include "gpu.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define TARGETS_FILE "/usr/local/share/sandbox-probe.targets"
#define TIME_LIMIT_S 20
#define ENGINE_FD    3   /* --fd of vgpu-engine@.service */
#define BY_SIGSYS    200 /* more than any errno that matters here */
#define BY_SIGNAL    201

static unsigned int number;
static bool failed;

static void report(bool ok, const char *what, const char *seen)
{
    fprintf(stderr, "%s %u - %s: %s\n", ok ? "ok" : "not ok", ++number, what, seen);
    failed = failed || !ok;
}

static bool read_targets(struct targets *targets)
{
    FILE *file = fopen(TARGETS_FILE, "re");
    bool ok;

    memset(targets, 0, sizeof(*targets));
    if (!file)
        return false;
    ok = fscanf(file, "%127s %127s %127s %127s %ld", targets->vgpu, targets->own, targets->drm,
                targets->disk, &targets->other_engine) == 5;
    fclose(file);
    return ok;
}

/* How far an attempt comes, in a process of its own: 0, an errno, BY_SIGSYS or BY_SIGNAL. */
static int run_attempt(const struct attempt *attempt, const struct targets *targets)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        alarm(TIME_LIMIT_S);
        _exit(attempt->run(targets));
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return BY_SIGNAL;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGSYS ? BY_SIGSYS : BY_SIGNAL;
    return WEXITSTATUS(status);
}

/* Refused, or not even seen; any other error means that it came as far as its arguments. */
static bool is_refusal(int result)
{
    switch (result) {
    case EPERM:
    case EACCES:
    case EROFS:
    case ENOENT:
    case ESRCH:
    case EAFNOSUPPORT:
    case BY_SIGSYS:
        return true;
    default:
        return false;
    }
}

static const char *result_text(int result)
{
    if (result == 0)
        return "done";
    if (result == BY_SIGSYS)
        return "killed by the filter";
    return result == BY_SIGNAL ? "ended by a signal" : g_strerror(result);
}

static void try_all(const struct targets *targets, bool inside)
{
    for (size_t i = 0; i < num_attempts; i++) {
        int result = run_attempt(&attempts[i], targets);

        report(result != BY_SIGNAL && is_refusal(result) == inside, attempts[i].what,
               result_text(result));
    }
}

static bool may_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* What has to work for an engine to do its work: a sandbox that refuses everything proves nothing.
 */
static void try_work(const char *render_node)
{
    int memory = memfd_create("probe", MFD_CLOEXEC);

    report(memory >= 0 && ftruncate(memory, 4096) == 0, "its work: shared memory", "memfd_create");
    report(render_node && may_open(render_node, O_RDWR), "its work: its own GPU",
           render_node ? render_node : "no node");
    report(may_open("/usr/lib/os-release", O_RDONLY), "its work: read libraries", "/usr/lib");
    report(may_open("/sys/class/drm", O_RDONLY | O_DIRECTORY), "its work: look the GPU up",
           "/sys/class/drm");
}

static void list_node(const char *path)
{
    if (may_open(path, O_RDWR))
        fprintf(stderr, "# may read and write %s\n", path);
    else if (may_open(path, O_RDONLY))
        fprintf(stderr, "# may read %s\n", path);
}

static void list_nodes(const char *dir_path)
{
    g_autoptr(GDir) dir = g_dir_open(dir_path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(dir_path, name, NULL);

        list_node(path);
    }
}

/* Devices that can be opened, and directories whose content can be read. */
static void list_allowed(void)
{
    /* What the unit's list of devices has, and what every process finds in /dev. */
    static const char *const nodes[] = {
        "/dev/null",    "/dev/zero", "/dev/full",       "/dev/random",
        "/dev/urandom", "/dev/tty",  "/dev/udmabuf",    "/dev/nvidiactl",
        "/dev/nvidia0", "/dev/shm",  "/dev/nvidia-uvm", "/dev/nvidia-modeset",
    };
    static const char *const places[] = {
        "/",        "/bin",  "/boot", "/dev",  "/dev/dri",  "/dev/vgpu", "/etc",
        "/etc/ssl", "/home", "/lib",  "/proc", "/proc/sys", "/root",     "/run",
        "/srv",     "/sys",  "/tmp",  "/usr",  "/var",      "/var/lib",  "/var/tmp",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++)
        list_node(nodes[i]);
    list_nodes("/dev/dri");
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        if (may_open(places[i], O_RDONLY | O_DIRECTORY))
            fprintf(stderr, "# may read the directory %s\n", places[i]);
    }
}

static void list_open_files(void)
{
    for (int fd = 0; fd < 64; fd++) {
        char link[64], target[256];
        ssize_t len;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        len = readlink(link, target, sizeof(target) - 1);
        if (len < 0)
            continue;
        target[len] = '\0';
        fprintf(stderr, "# has open: %d %s\n", fd, target);
    }
}

/* Numbers only: the GPU's name is not known here, and any node that opens is listed above. */
static char *first_render_node(void)
{
    for (int minor = 128; minor < 192; minor++) {
        g_autofree char *path = g_strdup_printf("/dev/dri/renderD%d", minor);

        if (may_open(path, O_RDWR))
            return g_strdup(path);
    }
    return NULL;
}

static int probe(const struct targets *targets)
{
    g_autofree char *render_node = first_render_node();

    list_open_files();
    list_allowed();
    try_work(render_node);
    try_all(targets, true);
    fprintf(stderr, "1..%u\n", number);
    return failed ? 1 : 0;
}

/* The same way into the sandbox as theirs, whose place it has. */
static int run_inside(struct targets *targets, const char *gpu_name, GError *reason)
{
    g_autoptr(GError) error = reason;
    struct gpu *gpu = gpu_name ? gpu_lookup(gpu_name, "", &error) : NULL;

    if (!gpu || !sandbox_enter((const char *const *)gpu->nodes, NULL, &error)) {
        fprintf(stderr, "Bail out! %s\n", error ? error->message : "no GPU");
        return 1;
    }
    sd_notify(0, "READY=1");
    /* There is none: a child of ours, which has the same user, stands for it. */
    targets->peer = fork();
    if (targets->peer == 0) {
        pause();
        _exit(0);
    }
    return probe(targets);
}

/* An engine's GPU is that of the device that it was given. */
static int run_as_engine(struct targets *targets)
{
    GError *error = NULL;
    struct vgpu_transport *transport = device_adopt(ENGINE_FD, &error);
    struct vgpu_engine_info info;
    bool ok = transport && transport->ops->info(transport, &info) == 0;

    return run_inside(targets, ok ? info.gpu : NULL, error);
}

/* In the render server's place: a worker is a child of it, and its engine, or session, is its
 * parent. */
static int run_as_server(struct targets *targets)
{
    pid_t worker;

    targets->peer = getppid();
    worker = fork();
    if (worker == 0)
        _exit(probe(targets));
    return waitpid(worker, NULL, 0) < 0;
}

int main(int argc, char **argv)
{
    struct targets targets;

    if (!read_targets(&targets)) {
        fprintf(stderr, "Bail out! %s: %s\n", TARGETS_FILE, g_strerror(errno));
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "--engine") == 0)
        return run_as_engine(&targets);
    if (argc > 2 && strcmp(argv[1], "--guard") == 0)
        return run_inside(&targets, argv[2], NULL);
    if (argc > 1 && strcmp(argv[1], "--outside") == 0) {
        targets.peer = targets.other_engine;
        memcpy(targets.own, targets.vgpu, sizeof(targets.own));
        try_all(&targets, false);
        fprintf(stderr, "1..%u\n", number);
        return failed ? 1 : 0;
    }
    return run_as_server(&targets);
}
