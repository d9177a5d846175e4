/* SPDX-License-Identifier: MIT */
/*
 * Processes that use their slice's GPU and are no members of its arbiter: who is one, what becomes
 * of it, and what the slice is charged.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "host-agent/daemon/agent.h"
#include "host-agent/meter/metrics_server.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/slices_kit.h"

#define SCOPE   "/sys/fs/cgroup/machine.slice/libpod-web.scope"
#define CONF    "/etc/vgpu/vgpud.conf"
#define CHARGED "/run/vgpu/governor/" ADDRESS "/slices/" UUID ".ungoverned"

static void write_proc(AgentOnBus *at, guint pid, const char *file, const char *text)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/%s", pid, file);

    file_tree_write(at->root, path, text);
}

/* A container whose members are 77 and 78, as the arbiter says, and whose other processes are 79
 * and 80. */
static void open_container(AgentOnBus *at, FakeArbiter *arbiter, const char *conf)
{
    HostRoot *root = shared_tree();

    if (conf)
        file_tree_write(root, CONF, conf);
    fake_arbiter_open(arbiter, root);
    agent_on_bus_open_tree(at, root);
    file_tree_write(root, SCOPE "/cgroup.procs", "77\n79\n");
    file_tree_write(root, SCOPE "/below/cgroup.procs", "78\n80\n");
    for (guint pid = 77; pid <= 80; pid++) {
        process(at, pid, 1000 + pid);
        write_proc(at, pid, "comm", "trainer\n");
        write_proc(at, pid, "cgroup", "0::/machine.slice/libpod-web.scope\n");
    }
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    assert_hook(at, "claim", WEB, 0, "");
}

static void close_container(AgentOnBus *at, FakeArbiter *arbiter)
{
    agent_on_bus_close(at);
    fake_arbiter_close(arbiter);
}

/* What Prometheus is told. */
static void assert_ungoverned(const AgentOnBus *at, const char *count)
{
    gsize length;
    g_autofree char *text = scrape_text(meter_scrape(at->meter), &length);
    const char *found = strstr(text, "\nvgpu_slice_ungoverned_processes{");
    g_autofree char *line = NULL;

    g_assert_nonnull(found);
    line = g_strndup(found + 1, strcspn(found + 1, "\n"));
    g_test_message("%s", line);
    g_assert_true(g_str_has_suffix(line, count));
}

/* It has the node open, with that in its fdinfo. */
static void open_node(AgentOnBus *at, guint pid, const char *info)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/fd/5", pid);
    g_autofree char *full = root_path(at->root, path, NULL);

    g_unlink(full);
    file_tree_link(at->root, path, "/dev/dri/renderD128");
    write_proc(at, pid, "fdinfo/5", info);
}

static void use_gpu_as(AgentOnBus *at, guint pid, guint client)
{
    g_autofree char *info =
        g_strdup_printf("pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t%u\ndrm-pdev:\t" ADDRESS
                        "\ndrm-memory-vram:\t4096 KiB\ndrm-engine-compute:\t1000000 ns\n",
                        client);

    open_node(at, pid, info);
}

/* By a file that it has opened itself. */
static void use_gpu(AgentOnBus *at, guint pid)
{
    use_gpu_as(at, pid, pid);
}

static void test_report(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    /* A member, one that has only looked, and one of another GPU. */
    use_gpu(&at, 77);
    open_node(&at, 79, "drm-pdev:\t" ADDRESS "\ndrm-memory-vram:\t0 KiB\ndrm-engine-gfx:\t0 ns\n");
    open_node(&at, 80, "drm-pdev:\t0000:99:00.0\ndrm-memory-vram:\t4096 KiB\n");
    bypass_watch_look(meter_bypass(at.meter));
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 0");
    /* One look may see it before it has joined. */
    use_gpu(&at, 80);
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 0");
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 1");
    /* Another process that has the number now. */
    process(&at, 80, 5000);
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 0");
    process_ends(&at, 80);
    bypass_watch_look(meter_bypass(at.meter));
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 0");
    g_assert_false(exists(&at, "/kill-log"));
    close_container(&at, &arbiter);
}

static void look_twice(const AgentOnBus *at)
{
    bypass_watch_look(meter_bypass(at->meter));
    bypass_watch_look(meter_bypass(at->meter));
}

/* A loader's worker has its parent's open file, whose use is the parent's, and runs no call. */
static void test_forked(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    use_gpu_as(&at, 77, 9);
    use_gpu_as(&at, 79, 9);
    look_twice(&at);
    assert_ungoverned(&at, " 0");
    /* A client of its own beside the inherited one. */
    write_proc(&at, 79, "fdinfo/6",
               "drm-client-id:\t10\ndrm-pdev:\t" ADDRESS "\ndrm-memory-vram:\t4096 KiB\n");
    file_tree_link(at.root, "/proc/79/fd/6", "/dev/dri/renderD128");
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* A container may make nodes: /dev/null stands for one. */
static void test_renamed(void)
{
    const char *info = "drm-client-id:\t1\ndrm-pdev:\t" ADDRESS "\ndrm-memory-vram:\t4096 KiB\n";
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_link(at.root, "/proc/80/fd/5", "/dev/../dev/null");
    write_proc(&at, 80, "fdinfo/5", info);
    /* What is no device is not asked. */
    file_tree_link(at.root, "/proc/79/fd/5", "/etc/passwd");
    write_proc(&at, 79, "fdinfo/5", info);
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* Stopped, it could not join the arbiter that was started again. It is charged, and goes on. */
static void test_orphan(void)
{
    static const char after[] = "{\"slices\":[{\"id\":\"" UUID "\",\"vram_used\":0,"
                                "\"since_ns\":20000000000,\"pids\":[77]}]}\n";
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, "[slices]\non-bypass=kill\n");
    use_gpu(&at, 78);
    bypass_watch_look(meter_bypass(at.meter));
    fake_arbiter_close(&arbiter);
    fake_arbiter_open_with(&arbiter, at.root, after);
    look_twice(&at);
    assert_ungoverned(&at, " 0");
    g_assert_true(exists(&at, CHARGED));
    g_assert_false(exists(&at, "/kill-log"));
    /* One that began later has never been a member. */
    process(&at, 78, 5000);
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* Somebody who may make cgroups does not keep vgpud busy with them. */
static void test_many_cgroups(void)
{
    g_autoptr(GString) deep = g_string_new(SCOPE);
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    for (guint i = 0; i < 1100; i++)
        g_string_append(deep, "/e");
    g_string_append(deep, "/cgroup.procs");
    file_tree_write(at.root, deep->str, "79\n");
    file_tree_write(at.root, SCOPE "/cgroup.procs", "77\n");
    use_gpu(&at, 79);
    use_gpu(&at, 80);
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* What a claim by somebody who chooses the id would have looked at: all containers. */
static void test_ancestor(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    assert_hook(&at, "release", WEB, 0, "");
    assert_hook(&at, "claim", "{\"id\":\"machine.slice\",\"pid\":77}", 0, "");
    use_gpu(&at, 80);
    look_twice(&at);
    assert_ungoverned(&at, " 0");
    close_container(&at, &arbiter);
}

static void assert_charged(const AgentOnBus *at, guint64 memory, guint64 gpu_ns)
{
    g_autofree char *text = text_of(at, CHARGED);
    g_autofree char *expected = g_strdup_printf("[ungoverned]\nmemory=%" G_GUINT64_FORMAT
                                                "\ngpu_ns=%" G_GUINT64_FORMAT "\n",
                                                memory, gpu_ns);

    if (memory || gpu_ns)
        g_assert_cmpstr(text, ==, expected);
    else
        g_assert_null(text);
}

static void use_memory(AgentOnBus *at, guint pid, const char *memory, guint ns)
{
    g_autofree char *info = g_strdup_printf("drm-client-id:\t%u\ndrm-pdev:\t" ADDRESS
                                            "\n%s\ndrm-engine-compute:\t%u ns\n",
                                            pid, memory, ns);

    open_node(at, pid, info);
}

/* What goes round the door is the slice's, and not what the members do. */
static void test_charged(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    use_memory(&at, 77, "drm-memory-vram:\t4 KiB", 1000);
    use_memory(&at, 80, "drm-resident-vram0:\t3072 KiB\ndrm-shared-vram0:\t1024 KiB", 1000);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 0, 0);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 3 << 20, 1000);
    use_memory(&at, 77, "drm-memory-vram:\t4 KiB", 900000);
    use_memory(&at, 80, "drm-resident-vram0:\t1024 KiB", 1400);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 1 << 20, 1400);
    /* No more than the time that has passed. */
    use_memory(&at, 80, "drm-resident-vram0:\t1024 KiB", 4000000000u);
    bypass_watch_look(meter_bypass(at.meter));
    assert_not_in_file(&at, CHARGED, "gpu_ns=3999");
    use_memory(&at, 80, "drm-resident-vram0:\t1024 KiB", 0);
    process_ends(&at, 80);
    bypass_watch_look(meter_bypass(at.meter));
    assert_in_file(&at, CHARGED, "memory=0\n");
    assert_hook(&at, "release", WEB, 0, "");
    assert_charged(&at, 0, 0);
    close_container(&at, &arbiter);
}

#define CARD_DIR "/sys/devices/pci0000:00/0000:00:01.0/" ADDRESS "/"

/* In AMD's processors (here by the measurements' form) nearly all of it is the host's memory. */
static void test_charged_apu(void)
{
    static const char memory[] = "drm-memory-vram:\t1024 KiB\ndrm-memory-gtt:\t2048 KiB";
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_write(at.root, CARD_DIR "mem_info_gtt_total", "115964116992\n");
    use_memory(&at, 80, memory, 1000);
    bypass_watch_look(meter_bypass(at.meter));
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 1 << 20, 1000);
    file_tree_write(at.root, CARD_DIR "gpu_metrics", "\x60\x01\x03\x01");
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 3 << 20, 1000);
    close_container(&at, &arbiter);
}

/* What members have by the driver, beyond what they requested. */
static void test_beyond(void)
{
    static const char text[] =
        "{\"slices\":[{\"id\":\"" UUID
        "\",\"vram_used\":209715200,\"vram_ungoverned\":104857600,\"pids\":[77,78]}]}\n";
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    fake_arbiter_close(&arbiter);
    fake_arbiter_open_with(&arbiter, at.root, text);
    /* 100 MiB were requested. One look may see what was requested since the arbiter said so. */
    use_memory(&at, 77, "drm-resident-vram0:\t204800 KiB\ndrm-shared-vram0:\t1024 KiB", 0);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 0, 0);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 99 << 20, 0);
    use_memory(&at, 77, "drm-resident-vram0:\t163840 KiB\ndrm-shared-vram0:\t1024 KiB", 0);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 0, 0);
    /* It is not known how much of it another one has, too. */
    use_memory(&at, 77, "drm-memory-vram:\t204800 KiB", 0);
    look_twice(&at);
    assert_charged(&at, 0, 0);
    close_container(&at, &arbiter);
}

static void put_reading(AgentOnBus *at, gint64 time, const char *processes)
{
    g_autofree char *text =
        g_strdup_printf("[gpu]\ntime=%" G_GINT64_FORMAT "\n%s", time, processes);

    file_tree_write(at->root, "/run/vgpu/readings/" ADDRESS, text);
}

/* NVIDIA's driver says it twice a minute. 77 is a member with 600 MiB of a context's. */
static void test_nvidia_charged(void)
{
    static const char processes[] =
        "[process_memory]\n77=629145600\n80=4096\n9=1\n[process_busy]\n80=25\n77=60\n";
    gint64 now = g_get_monotonic_time();
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_write(at.root, "/proc/driver/nvidia/gpus/" ADDRESS "/information",
                    "Device Minor: \t 3\n");
    write_proc(&at, 80, "maps", "7f0-7f1 rw-s 00000000 00:05 1                  /dev/nvidia3\n");
    put_reading(&at, now - 40 * G_USEC_PER_SEC, processes);
    look_twice(&at);
    assert_charged(&at, 4096, 0);
    put_reading(&at, now - 10 * G_USEC_PER_SEC, processes);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 629145600, 7500000000);
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 629145600, 7500000000);
    put_reading(&at, now, "[process_memory]\n77=4096\n");
    bypass_watch_look(meter_bypass(at.meter));
    assert_charged(&at, 0, 7500000000);
    close_container(&at, &arbiter);
}

/* Listed by NVIDIA's driver in two readings, since it is not a member. */
static void test_nvidia_listed(void)
{
    static const char listed[] = "[process_memory]\n80=4096\n";
    gint64 now = g_get_monotonic_time();
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    put_reading(&at, now - G_USEC_PER_SEC, listed);
    look_twice(&at);
    look_twice(&at);
    /* It may have been a member then. */
    assert_ungoverned(&at, " 0");
    put_reading(&at, g_get_monotonic_time(), listed);
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 1");
    assert_charged(&at, 4096, 0);
    close_container(&at, &arbiter);
}

/* As a process has them after exec(): by chance. Forked ones have their parent's. */
static void put_stack(AgentOnBus *at, guint pid, const char *stack)
{
    g_autofree char *text =
        g_strdup_printf("%u (python) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 %u 1 1 0 "
                        "4194304 8388608 %s 0 0\n",
                        pid, 1000 + pid, stack);

    write_proc(at, pid, "stat", text);
}

/* A child of a member on NVIDIA's driver has its mappings, and no ids. */
static void test_nvidia_forked(void)
{
    static const char maps[] = "7f2-7f3 rw-s 0 00:05 2 /dev/nvidia3\n";
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_write(at.root, "/proc/driver/nvidia/gpus/" ADDRESS "/information",
                    "Device Minor: \t 3\n");
    put_stack(&at, 77, "140730000000000");
    put_stack(&at, 79, "140730000000000");
    put_stack(&at, 80, "140731111111111");
    for (guint pid = 77; pid <= 80; pid++)
        if (pid != 78)
            write_proc(&at, pid, "maps", maps);
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    /* The kernel says 0 to who may not know: that is no likeness. */
    put_stack(&at, 77, "0");
    put_stack(&at, 79, "0");
    look_twice(&at);
    assert_ungoverned(&at, " 2");
    close_container(&at, &arbiter);
}

/* NVIDIA's driver has no fdinfo: who has a channel has the GPU's node mapped. */
static void test_nvidia(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_write(at.root, "/proc/driver/nvidia/gpus/" ADDRESS "/information",
                    "Device Minor: \t 3\n");
    write_proc(&at, 79, "maps",
               "7f0-7f1 rw-s 00000000 00:05 1 /dev/nvidia-uvm\n7f2-7f3 rw-s 0 00:05 2 "
               "/dev/nvidia30\n");
    write_proc(&at, 80, "maps", "7f0-7f1 rw-s 00000000 00:05 1                  /dev/nvidia3\n");
    bypass_watch_look(meter_bypass(at.meter));
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* A training process maps hundreds of libraries, and the GPU's node behind them. */
static void test_nvidia_renamed(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_write(at.root, "/proc/driver/nvidia/gpus/" ADDRESS "/information",
                    "Device Minor: \t 3\n");
    file_tree_link(at.root, "/dev/nvidia3", "/dev/null");
    file_tree_link(at.root, "/proc/80/fd/5", "/dev/../dev/null");
    write_proc(&at, 80, "maps", "7f0-7f1 rw-s 00000000 00:05 1       /dev/../dev/null\n");
    /* Of another device. */
    file_tree_link(at.root, "/proc/79/fd/5", "/dev/../dev/zero");
    write_proc(&at, 79, "maps", "7f0-7f1 rw-s 00000000 00:05 1       /dev/../dev/zero\n");
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

static void test_nvidia_many(void)
{
    g_autoptr(GString) maps = g_string_new(NULL);
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    file_tree_write(at.root, "/proc/driver/nvidia/gpus/" ADDRESS "/information",
                    "Device Minor: \t 3\n");
    for (guint i = 0; i < 1000; i++)
        g_string_append(maps, "7f0-7f1 r-xp 00000000 00:05 1    /usr/lib/libtorch_cuda.so\n");
    g_string_append(maps, "7f2-7f3 rw-s 00000000 00:05 2    /dev/nvidia3\n");
    write_proc(&at, 80, "maps", maps->str);
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* A list of processes that is longer than a page. */
static void test_many_processes(void)
{
    g_autoptr(GString) pids = g_string_new(NULL);
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    for (guint pid = 1000000; pid < 1000900; pid++)
        g_string_append_printf(pids, "%u\n", pid);
    g_string_append(pids, "79\n");
    file_tree_write(at.root, SCOPE "/cgroup.procs", pids->str);
    use_gpu(&at, 79);
    look_twice(&at);
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* A second container on the same GPU. */
static void claim_second(AgentOnBus *at)
{
    file_tree_write(at->root, "/sys/fs/cgroup/machine.slice/libpod-db.scope/cgroup.procs", "78\n");
    write_proc(at, 78, "cgroup", "0::/machine.slice/libpod-db.scope\n");
    assert_says("slice create half --door native --uuid " UUID2, 0, UUID2, "");
    assert_hook_of(at, UUID2, "claim", DB, 0, "");
}

/* However many containers are on its GPU. */
static void test_asks_once(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    claim_second(&at);
    g_atomic_int_set(&arbiter.asked, 0);
    bypass_watch_look(meter_bypass(at.meter));
    g_assert_cmpint(g_atomic_int_get(&arbiter.asked), ==, 1);
    close_container(&at, &arbiter);
}

/* A container with as many processes as are looked at keeps the main loop from others once. */
static void test_in_parts(void)
{
    g_autoptr(GString) pids = g_string_new("79\n");
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, NULL);
    claim_second(&at);
    for (guint pid = 1000000; pid < 1002000; pid++)
        g_string_append_printf(pids, "%u\n", pid);
    file_tree_write(at.root, SCOPE "/cgroup.procs", pids->str);
    use_gpu(&at, 79);
    for (guint i = 0; i < 2; i++) {
        g_assert_false(bypass_watch_look(meter_bypass(at.meter)));
        g_assert_true(bypass_watch_look(meter_bypass(at.meter)));
    }
    assert_ungoverned(&at, " 1");
    /* The part of the next look that has not come to it forgets nobody. */
    g_assert_false(bypass_watch_look(meter_bypass(at.meter)));
    assert_ungoverned(&at, " 1");
    close_container(&at, &arbiter);
}

/* The main loop waits for it once. From then on only a thread does, once a second. */
static void test_hung(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;
    int hung;

    open_container(&at, &arbiter, NULL);
    claim_second(&at);
    fake_arbiter_close(&arbiter);
    hung = fake_arbiter_listen(at.root);
    for (guint i = 0; i < 5; i++)
        bypass_watch_look(meter_bypass(at.meter));
    g_assert_cmpuint(fake_arbiter_count(hung), <, 5);
    close(hung);
    agent_on_bus_close(&at);
}

/* Who makes a slice there learns why its programs would wait. */
static void test_create_hung(void)
{
    g_autofree char *line = NULL;
    g_autofree char *dir = NULL;
    FakeArbiter arbiter;
    AgentOnBus at;
    int hung;

    open_container(&at, &arbiter, NULL);
    fake_arbiter_close(&arbiter);
    hung = fake_arbiter_listen(at.root);
    dir = root_path(at.root, "", NULL);
    line = g_strdup_printf("--root %s slice create half --door native --uuid " UUID2, dir);
    assert_says(line, 0, UUID2, "the arbiter of GPU " ADDRESS " does not answer");
    close(hung);
    agent_on_bus_close(&at);
}

/* The program makes the file before it writes it. */
static gboolean is_killed(gconstpointer data)
{
    g_autofree char *text = text_of(data, "/kill-log");

    return text && strchr(text, '\n');
}

static void test_kill(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, "[slices]\non-bypass=kill\n");
    use_gpu(&at, 77);
    use_gpu(&at, 80);
    bypass_watch_look(meter_bypass(at.meter));
    g_assert_false(exists(&at, "/kill-log"));
    bypass_watch_look(meter_bypass(at.meter));
    iterate_until(is_killed, &at);
    assert_in_file(&at, "/kill-log", "--limit 20000 end 80:1080\n");
    assert_not_in_file(&at, "/kill-log", "77");
    close_container(&at, &arbiter);
}

static void test_ignore(void)
{
    FakeArbiter arbiter;
    AgentOnBus at;

    open_container(&at, &arbiter, "[slices]\non-bypass=ignore\n");
    use_gpu(&at, 80);
    bypass_watch_look(meter_bypass(at.meter));
    bypass_watch_look(meter_bypass(at.meter));
    assert_ungoverned(&at, " 0");
    close_container(&at, &arbiter);
}

static void got_answer(GObject *bus, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);

    g_assert_no_error(error);
    *(gboolean *)data = TRUE;
}

static void make_slice_of(const AgentOnBus *at, const char *owner)
{
    g_autofree char *text = g_strdup_printf(
        "([{'Owner': <'%s'>, 'Part': <'0'>, 'Uuids': <['" UUID "']>, 'Pool': <'local'>, 'Uid': "
        "<uint32 0>, 'Gpus': <['" ADDRESS
        "']>, 'Vram': <uint64 4294967296>, 'Door': <'native'>}],)",
        owner);
    gboolean answered = FALSE;

    g_dbus_connection_call(at->bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                           "CreateSlices", g_variant_new_parsed(text), NULL, G_DBUS_CALL_FLAGS_NONE,
                           -1, NULL, got_answer, &answered);
    while (!answered)
        g_main_context_iteration(NULL, TRUE);
}

/*
 * A job of Slurm's: nobody claims its slices, and its processes are where Slurm keeps them, also
 * the session of somebody who has come by ssh. 77 and 78 are members.
 */
static void assert_job_is_looked_at(const char *cgroup, gboolean found)
{
    g_autofree char *job = g_strconcat(cgroup, "/step_0/user/task_0/cgroup.procs", NULL);
    g_autofree char *shell =
        g_strconcat(cgroup, "/step_extern/user/task_special/cgroup.procs", NULL);
    HostRoot *root = shared_tree();
    FakeArbiter arbiter;
    AgentOnBus at;

    fake_arbiter_open(&arbiter, root);
    agent_on_bus_open_tree(&at, root);
    file_tree_write(root, job, "77\n");
    file_tree_write(root, shell, "80\n");
    process(&at, 77, 1077);
    process(&at, 80, 1080);
    write_proc(&at, 80, "comm", "trainer\n");
    make_slice_of(&at, "slurm:fleet:4711");
    use_memory(&at, 77, "drm-memory-vram:\t4 KiB", 1000);
    use_memory(&at, 80, "drm-memory-vram:\t3072 KiB", 1000);
    look_twice(&at);
    assert_ungoverned(&at, found ? " 1" : " 0");
    if (found)
        assert_charged(&at, 3 << 20, 1000);
    else
        assert_charged(&at, 0, 0);
    close_container(&at, &arbiter);
}

static void test_slurm(void)
{
    assert_job_is_looked_at("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_4711", TRUE);
    assert_job_is_looked_at("/sys/fs/cgroup/gpu.slice/node1_slurmstepd.scope/job_4711", TRUE);
    assert_job_is_looked_at("/sys/fs/cgroup/freezer/slurm/uid_1000/job_4711", TRUE);
    assert_job_is_looked_at("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_47110", FALSE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bypass/report", test_report);
    g_test_add_func("/bypass/forked", test_forked);
    g_test_add_func("/bypass/renamed", test_renamed);
    g_test_add_func("/bypass/orphan", test_orphan);
    g_test_add_func("/bypass/many-cgroups", test_many_cgroups);
    g_test_add_func("/bypass/charged", test_charged);
    g_test_add_func("/bypass/charged-apu", test_charged_apu);
    g_test_add_func("/bypass/beyond", test_beyond);
    g_test_add_func("/bypass/nvidia-charged", test_nvidia_charged);
    g_test_add_func("/bypass/nvidia-listed", test_nvidia_listed);
    g_test_add_func("/bypass/ancestor", test_ancestor);
    g_test_add_func("/bypass/nvidia", test_nvidia);
    g_test_add_func("/bypass/nvidia-forked", test_nvidia_forked);
    g_test_add_func("/bypass/nvidia-renamed", test_nvidia_renamed);
    g_test_add_func("/bypass/nvidia-many", test_nvidia_many);
    g_test_add_func("/bypass/many-processes", test_many_processes);
    g_test_add_func("/bypass/asks-once", test_asks_once);
    g_test_add_func("/bypass/in-parts", test_in_parts);
    g_test_add_func("/bypass/hung", test_hung);
    g_test_add_func("/bypass/create-hung", test_create_hung);
    g_test_add_func("/bypass/kill", test_kill);
    g_test_add_func("/bypass/ignore", test_ignore);
    g_test_add_func("/bypass/slurm", test_slurm);
    return g_test_run();
}
