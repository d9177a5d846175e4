// SPDX-License-Identifier: MIT
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* An attempt that consists of one system call. */
#define CALL(name, ...)                                                                            \
    static int call_##name(const struct targets *t)                                                \
    {                                                                                              \
        (void)t;                                                                                   \
        return syscall(__VA_ARGS__) < 0 ? errno : 0;                                               \
    }

static int open_path(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

#define OPEN(name, path, flags)                                                                    \
    static int open_##name(const struct targets *t)                                                \
    {                                                                                              \
        (void)t;                                                                                   \
        return open_path(path, flags);                                                             \
    }

OPEN(vgpu, t->vgpu, O_RDWR)
OPEN(own, t->own, O_RDWR)
OPEN(control, "/dev/vgpu-control", O_RDWR)
OPEN(drm, t->drm, O_RDWR)
OPEN(mem, "/dev/mem", O_RDONLY)
OPEN(kmsg, "/dev/kmsg", O_WRONLY)
OPEN(kvm, "/dev/kvm", O_RDWR)
OPEN(vfio, "/dev/vfio/vfio", O_RDWR)
OPEN(tun, "/dev/net/tun", O_RDWR)
OPEN(fuse, "/dev/fuse", O_RDWR)
OPEN(loop, "/dev/loop-control", O_RDWR)
OPEN(pty, "/dev/ptmx", O_RDWR)
OPEN(raw_disk, "/dev/vda", O_RDONLY)
OPEN(disk, t->disk, O_RDONLY)
OPEN(shadow, "/etc/shadow", O_RDONLY)
OPEN(passwd, "/etc/passwd", O_RDONLY)
OPEN(gpus, "/etc/vgpu/gpus.conf", O_RDONLY)
OPEN(root, "/root", O_RDONLY | O_DIRECTORY)
OPEN(run, "/run/libvirt", O_RDONLY | O_DIRECTORY)
OPEN(log, "/var/log", O_RDONLY | O_DIRECTORY)
OPEN(debugfs, "/sys/kernel/debug", O_RDONLY | O_DIRECTORY)
OPEN(module_parameter, "/sys/module/mdev_vgpu/parameters/reset_timeout_ms", O_WRONLY)
OPEN(pci_config, "/sys/bus/pci/devices/0000:00:00.0/config", O_WRONLY)
OPEN(sysctl, "/proc/sys/kernel/core_pattern", O_WRONLY)
OPEN(sysrq, "/proc/sysrq-trigger", O_WRONLY)
OPEN(oom, "/proc/self/oom_score_adj", O_WRONLY)
OPEN(mem_of_init, "/proc/1/mem", O_RDONLY)
OPEN(new_in_root, "/sandbox-probe", O_WRONLY | O_CREAT)
OPEN(new_in_usr, "/usr/lib/sandbox-probe", O_WRONLY | O_CREAT)
OPEN(new_in_tmp, "/tmp/sandbox-probe", O_WRONLY | O_CREAT)
OPEN(new_in_var_tmp, "/var/tmp/sandbox-probe", O_WRONLY | O_CREAT)
OPEN(new_in_shm, "/dev/shm/sandbox-probe", O_WRONLY | O_CREAT)
OPEN(new_in_run, "/run/sandbox-probe", O_WRONLY | O_CREAT)
OPEN(new_in_etc, "/etc/sandbox-probe", O_WRONLY | O_CREAT)

static int open_of_process(long pid, const char *name, int flags)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
    return open_path(path, flags);
}

OPEN(library, "/usr/lib/os-release", O_WRONLY)

static int other_memory(const struct targets *t)
{
    return open_of_process(t->other_engine, "mem", O_RDWR);
}

static int other_maps(const struct targets *t)
{
    return open_of_process(t->other_engine, "maps", O_RDONLY);
}

static int other_command(const struct targets *t)
{
    return open_of_process(t->other_engine, "cmdline", O_RDONLY);
}

static int other_signal(const struct targets *t)
{
    return kill((pid_t)t->other_engine, 0) < 0 ? errno : 0;
}

static int peer_memory_read(const struct targets *t)
{
    return open_of_process(t->peer, "mem", O_RDONLY);
}

static int peer_memory_write(const struct targets *t)
{
    return open_of_process(t->peer, "mem", O_RDWR);
}

static int peer_files(const struct targets *t)
{
    return open_of_process(t->peer, "fd", O_RDONLY | O_DIRECTORY);
}

CALL(ptrace_other, SYS_ptrace, PTRACE_SEIZE, t->other_engine, 0L, 0L)
CALL(ptrace_peer, SYS_ptrace, PTRACE_SEIZE, t->peer, 0L, 0L)
CALL(vm_read_peer, SYS_process_vm_readv, t->peer, NULL, 0, NULL, 0, 0)
CALL(vm_write_peer, SYS_process_vm_writev, t->peer, NULL, 0, NULL, 0, 0)
CALL(signal_init, SYS_kill, 1, 0)

/* Takes a file of another process over, by its pidfd. */
static int take_file(long pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    long fd;

    if (pidfd < 0)
        return errno;
    fd = syscall(SYS_pidfd_getfd, pidfd, 0, 0);
    return fd < 0 ? errno : 0;
}

static int file_of_other(const struct targets *t)
{
    return take_file(t->other_engine);
}

static int file_of_peer(const struct targets *t)
{
    return take_file(t->peer);
}

static int open_socket(int family, int type, int protocol)
{
    return socket(family, type | SOCK_CLOEXEC, protocol) < 0 ? errno : 0;
}

#define SOCKET(name, family, type, protocol)                                                       \
    static int socket_##name(const struct targets *t)                                              \
    {                                                                                              \
        (void)t;                                                                                   \
        return open_socket(family, type, protocol);                                                \
    }

SOCKET(inet, AF_INET, SOCK_STREAM, 0)
SOCKET(inet6, AF_INET6, SOCK_DGRAM, 0)
SOCKET(netlink, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)
SOCKET(uevent, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)
SOCKET(packet, AF_PACKET, SOCK_RAW, 0)
SOCKET(vsock, AF_VSOCK, SOCK_STREAM, 0)

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
}

#define CONNECT(name, path)                                                                        \
    static int connect_##name(const struct targets *t)                                             \
    {                                                                                              \
        (void)t;                                                                                   \
        return connect_unix(path);                                                                 \
    }

CONNECT(dbus, "/run/dbus/system_bus_socket")
CONNECT(libvirt, "/run/libvirt/libvirt-sock-ro")
CONNECT(systemd, "/run/systemd/private")
CONNECT(udev, "/run/udev/control")
CONNECT(opt, "/opt/sandbox-probe.socket")
CONNECT(shm, "/dev/shm/sandbox-probe.socket")
CONNECT(userdb, "/run/systemd/userdb/io.systemd.DynamicUser")

CALL(mount, SYS_mount, NULL, NULL, NULL, 0UL, NULL)
CALL(umount, SYS_umount2, NULL, 0)
CALL(move_mount, SYS_move_mount, -1, NULL, -1, NULL, 0)
CALL(chroot, SYS_chroot, "/")
CALL(pivot_root, SYS_pivot_root, NULL, NULL)
CALL(unshare_user, SYS_unshare, CLONE_NEWUSER)
CALL(unshare_mount, SYS_unshare, CLONE_NEWNS)
CALL(unshare_net, SYS_unshare, CLONE_NEWNET)
CALL(setns, SYS_setns, -1, 0)
CALL(keyctl, SYS_keyctl, 0, -3, 0)
CALL(add_key, SYS_add_key, NULL, NULL, NULL, 0, 0)
CALL(bpf, SYS_bpf, BPF_MAP_CREATE, NULL, 0)
CALL(io_uring, SYS_io_uring_setup, 1, NULL)
CALL(userfaultfd, SYS_userfaultfd, 0)
CALL(perf, SYS_perf_event_open, NULL, 0, -1, -1, 0)
CALL(kexec, SYS_kexec_load, 0, 1UL << 60, NULL, 0)
CALL(insmod, SYS_finit_module, -1, NULL, 0)
CALL(rmmod, SYS_delete_module, NULL, 0)
CALL(setuid, SYS_setuid, 0)
CALL(setgid, SYS_setgid, 0)
CALL(setgroups, SYS_setgroups, 0, NULL)
CALL(capset, SYS_capset, NULL, NULL)
CALL(chown, SYS_chown, NULL, 0, 0)
CALL(reboot, SYS_reboot, 0, 0, 0, NULL)
CALL(swapon, SYS_swapon, NULL, 0)
CALL(clock, SYS_clock_settime, 0, NULL)
CALL(hostname, SYS_sethostname, NULL, 1)
CALL(iopl, SYS_iopl, 3)
CALL(ioperm, SYS_ioperm, 0x80, 1, 1)
CALL(ldt, SYS_modify_ldt, 0, NULL, 0)
CALL(personality, SYS_personality, ADDR_NO_RANDOMIZE)
CALL(handle, SYS_open_by_handle_at, -1, NULL, 0)
CALL(fanotify, SYS_fanotify_init, 0, 0)
CALL(quota, SYS_quotactl, 0, NULL, 0, NULL)
CALL(acct, SYS_acct, NULL)
CALL(syslog, SYS_syslog, 10, NULL, 0)
CALL(vhangup, SYS_vhangup)
CALL(move_pages, SYS_move_pages, 1, 0, NULL, NULL, NULL, 0)
CALL(setid_file, SYS_fchmodat, AT_FDCWD, NULL, 04755)

/* The node of a memory device, made where one may write. */
static int make_node(const struct targets *t)
{
    (void)t;
    if (mknod("/tmp/sandbox-probe-node", S_IFCHR | 0600, 0x101) < 0)
        return errno;
    unlink("/tmp/sandbox-probe-node");
    return 0;
}

static int realtime(const struct targets *t)
{
    struct sched_param param = {.sched_priority = 1};

    (void)t;
    return sched_setscheduler(0, SCHED_FIFO, &param) < 0 ? errno : 0;
}

static int nicer(const struct targets *t)
{
    (void)t;
    return setpriority(PRIO_PROCESS, 0, -10) < 0 ? errno : 0;
}

/* The filter knows the numbers of 64-bit calls only. */
static int call_32_bit(const struct targets *t)
{
    long ret = 20; /* getpid */

    (void)t;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "+a"(ret) : : "memory", "r8", "r9", "r10", "r11");
#else
    ret = -ENOSYS;
#endif
    return ret < 0 ? (int)-ret : 0;
}

/* The program's own status, 0 in all cases here, where it could be run. */
static int run_program(const char *path, const char *option, const char *argument)
{
    char *const argv[] = {(char *)path, (char *)option, (char *)argument, NULL};
    char *const envp[] = {NULL};
    int null = open("/dev/null", O_RDWR);

    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execve(path, argv, envp);
    return errno;
}

#define RUN(name, ...)                                                                             \
    static int run_##name(const struct targets *t)                                                 \
    {                                                                                              \
        (void)t;                                                                                   \
        return run_program(__VA_ARGS__);                                                           \
    }

RUN(shell, "/bin/sh", "-c", ":")
RUN(mount, "/usr/bin/mount", "--version", NULL)
RUN(engine, "/usr/bin/vgpu-engine", "--version", NULL)

const struct attempt attempts[] = {
    {"open another vGPU's node", open_vgpu},
    {"open its own vGPU's node again", open_own},
    {"open /dev/vgpu-control", open_control},
    {"open another GPU's render node", open_drm},
    {"open /dev/mem", open_mem},
    {"open /dev/kmsg", open_kmsg},
    {"open /dev/kvm", open_kvm},
    {"open /dev/vfio/vfio", open_vfio},
    {"open /dev/net/tun", open_tun},
    {"open /dev/fuse", open_fuse},
    {"open /dev/loop-control", open_loop},
    {"open /dev/ptmx", open_pty},
    {"open the host's disk", open_raw_disk},
    {"open a VM's disk", open_disk},
    {"read /etc/shadow", open_shadow},
    {"read /etc/passwd", open_passwd},
    {"read /etc/vgpu/gpus.conf", open_gpus},
    {"list /root", open_root},
    {"list /run/libvirt", open_run},
    {"list /var/log", open_log},
    {"list debugfs", open_debugfs},
    {"write a parameter of the driver", open_module_parameter},
    {"write a PCI device's configuration", open_pci_config},
    {"write a sysctl", open_sysctl},
    {"write /proc/sysrq-trigger", open_sysrq},
    {"write its own oom_score_adj", open_oom},
    {"read the memory of process 1", open_mem_of_init},
    {"make a file in /", open_new_in_root},
    {"make a file in /usr/lib", open_new_in_usr},
    {"make a file in /tmp", open_new_in_tmp},
    {"make a file in /var/tmp", open_new_in_var_tmp},
    {"make a file in /dev/shm", open_new_in_shm},
    {"make a file in /run", open_new_in_run},
    {"make a file in /etc", open_new_in_etc},
    {"write a file of the system", open_library},
    {"another engine: open its memory", other_memory},
    {"another engine: read its maps", other_maps},
    {"another engine: read its command line", other_command},
    {"another engine: send a signal", other_signal},
    {"another engine: ptrace", call_ptrace_other},
    {"another engine: take a file by pidfd_getfd", file_of_other},
    {"same user's engine: read its memory", peer_memory_read},
    {"same user's engine: write its memory", peer_memory_write},
    {"same user's engine: list its files", peer_files},
    {"same user's engine: ptrace", call_ptrace_peer},
    {"same user's engine: process_vm_readv", call_vm_read_peer},
    {"same user's engine: process_vm_writev", call_vm_write_peer},
    {"same user's engine: take a file by pidfd_getfd", file_of_peer},
    {"send a signal to process 1", call_signal_init},
    {"socket: inet", socket_inet},
    {"socket: inet6", socket_inet6},
    {"socket: netlink, routes", socket_netlink},
    {"socket: netlink, uevents", socket_uevent},
    {"socket: packet", socket_packet},
    {"socket: vsock", socket_vsock},
    {"connect to D-Bus", connect_dbus},
    {"connect to libvirt", connect_libvirt},
    {"connect to systemd", connect_systemd},
    {"connect to udev", connect_udev},
    {"connect to systemd's user database", connect_userdb},
    {"connect to a socket in /opt", connect_opt},
    {"connect to a socket in /dev/shm", connect_shm},
    {"mount", call_mount},
    {"umount", call_umount},
    {"move_mount", call_move_mount},
    {"chroot", call_chroot},
    {"pivot_root", call_pivot_root},
    {"unshare: user namespace", call_unshare_user},
    {"unshare: mount namespace", call_unshare_mount},
    {"unshare: network namespace", call_unshare_net},
    {"setns", call_setns},
    {"keyctl", call_keyctl},
    {"add_key", call_add_key},
    {"bpf", call_bpf},
    {"io_uring", call_io_uring},
    {"userfaultfd", call_userfaultfd},
    {"perf_event_open", call_perf},
    {"kexec_load", call_kexec},
    {"load a module", call_insmod},
    {"unload a module", call_rmmod},
    {"setuid(0)", call_setuid},
    {"setgid(0)", call_setgid},
    {"setgroups", call_setgroups},
    {"capset", call_capset},
    {"chown", call_chown},
    {"a set-user-id bit", call_setid_file},
    {"mknod", make_node},
    {"reboot", call_reboot},
    {"swapon", call_swapon},
    {"set the clock", call_clock},
    {"set the host's name", call_hostname},
    {"iopl", call_iopl},
    {"ioperm", call_ioperm},
    {"modify_ldt", call_ldt},
    {"personality", call_personality},
    {"a 32-bit system call", call_32_bit},
    {"open_by_handle_at", call_handle},
    {"fanotify_init", call_fanotify},
    {"quotactl", call_quota},
    {"acct", call_acct},
    {"read the kernel's log", call_syslog},
    {"vhangup", call_vhangup},
    {"move_pages", call_move_pages},
    {"realtime scheduling", realtime},
    {"a higher priority", nicer},
    {"run a shell by its name", run_shell},
    {"run a set-user-id program", run_mount},
    {"run another engine", run_engine},
};
const size_t num_attempts = sizeof(attempts) / sizeof(attempts[0]);
