/* SPDX-License-Identifier: MIT */
/*
 * Device memory in the window by 2 MiB, if the VMM's address, the offset and the memory are
 * aligned. What is mapped so is asked of the kernel (PAGEMAP_SCAN).
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/futex.h>

#include "testbed.h"

#define HUGE       (2 * MIB)
#define SIZE       (2 * HUGE)
#define OFFSET     (4 * MIB)
#define HUGE_PAGES "/proc/sys/vm/nr_hugepages"

/* Earlier kernels map device memory by single pages. */
static void require_huge(void)
{
    unsigned major = 0, minor = 0;
    struct utsname name;

    uname(&name);
    sscanf(name.release, "%u.%u", &major, &minor);
    /* The driver has them where the kernel has transparent huge pages (6.12-debug has none). */
    if (major < 6 || (major == 6 && minor < 12) ||
        access("/sys/kernel/mm/transparent_hugepage", F_OK))
        driver_test_skip("Linux %s has no large mappings of device memory", name.release);
    g_assert_true(
        g_file_set_contents_full(HUGE_PAGES, "10", -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL));
}

/* The window, @shift bytes after an address that is aligned to 2 MiB. */
static void map_window(Testbed *tb, uint64_t shift)
{
    uint8_t *room =
        mmap(NULL, TESTBED_WINDOW + SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *aligned = (uint8_t *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    uint64_t at = tb->dev.region[VFIO_PCI_BAR2_REGION_INDEX].offset;

    tb->window = mmap(aligned + shift, TESTBED_WINDOW, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, tb->dev.fd, (off_t)at);
    g_assert_true(tb->window != MAP_FAILED);
}

static bool is_huge(const Testbed *tb, uint64_t offset)
{
    struct page_region found;
    struct pm_scan_arg scan = {
        .size = sizeof(scan),
        .start = (uintptr_t)tb->window + offset,
        .end = (uintptr_t)tb->window + offset + HUGE,
        .vec = (uintptr_t)&found,
        .vec_len = 1,
        .category_mask = PAGE_IS_HUGE,
        .return_mask = PAGE_IS_HUGE,
    };
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int count = ioctl(fd, PAGEMAP_SCAN, &scan);

    g_assert_cmpint(count, >=, 0);
    close(fd);
    return count == 1 && found.start == scan.start && found.end == scan.end;
}

static uint64_t count_faults(const Testbed *tb)
{
    return mdev_attr_u64(tb->uuid, "vgpu/window_faults");
}

/* Memory of the engine at @offset of the window, all of which is seen. */
static uint64_t show_memory(Testbed *tb, MemoryKind kind, uint64_t offset)
{
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, kind, SIZE, &addr));
    assert_ok(peer_publish(tb->engine, offset, SIZE, addr));
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        assert_window_pattern(tb, offset + page * PAGE_BYTES, page);
    return addr;
}

static void test_aligned(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint32_t word = 0xcafef00d, seen = 0;
    uint64_t addr, before;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    before = count_faults(tb);
    addr = show_memory(tb, MEMORY_UDMABUF_HUGE, OFFSET);
    g_assert_true(is_huge(tb, OFFSET));
    g_assert_true(is_huge(tb, OFFSET + HUGE));
    g_assert_cmpuint(count_faults(tb) - before, ==, 2);
    *(volatile uint32_t *)(tb->window + OFFSET + HUGE + 12) = 0xdeadbeef;
    assert_ok(peer_peek(tb->engine, addr + HUGE + 12, &seen, sizeof(seen)));
    g_assert_cmphex(seen, ==, 0xdeadbeef);
    assert_ok(peer_poke(tb->engine, addr + SIZE - 4, &word, sizeof(word)));
    g_assert_cmphex(*(volatile uint32_t *)(tb->window + OFFSET + SIZE - 4), ==, word);

    assert_ok(peer_unpublish(tb->engine, OFFSET, SIZE));
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        assert_window_blank(tb, OFFSET + page * PAGE_BYTES);
}

/* Shows memory at OFFSET, prints what that cost, and takes it back. */
static void show_and_count(Testbed *tb, const char *run)
{
    uint64_t before = count_faults(tb);

    show_memory(tb, MEMORY_UDMABUF_HUGE, OFFSET);
    g_test_message("%s: %u faults of the window for 4 MiB, %d of 2 mapped as a whole", run,
                   (unsigned)(count_faults(tb) - before),
                   is_huge(tb, OFFSET) + is_huge(tb, OFFSET + HUGE));
    assert_ok(peer_unpublish(tb->engine, OFFSET, SIZE));
}

/*
 * What a guest sees in the second hour. A page table that a small buffer once needed stays in the
 * VMM, empty, and the kernel has no call to free it.
 */
static void test_second_run(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    show_and_count(tb, "first run");
    show_and_count(tb, "again at once");
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, OFFSET, PAGE_BYTES, addr));
    assert_window_pattern(tb, OFFSET, 0);
    assert_ok(peer_unpublish(tb->engine, OFFSET, PAGE_BYTES));
    show_and_count(tb, "after a page in the first 2 MiB");
    show_memory(tb, MEMORY_UDMABUF_HUGE, OFFSET);
    g_assert_true(is_huge(tb, OFFSET + HUGE));
}

/* The engine loses one page of 2 MiB: the window has that page no longer, and keeps the others. */
static void test_hole(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    addr = show_memory(tb, MEMORY_UDMABUF_HUGE, OFFSET);
    assert_ok(peer_munmap(tb->engine, addr + 5 * PAGE_BYTES, PAGE_BYTES));
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        if (page != 5)
            assert_window_pattern(tb, OFFSET + page * PAGE_BYTES, page);
    assert_window_blank(tb, OFFSET + 5 * PAGE_BYTES);
    g_assert_false(is_huge(tb, OFFSET));
    g_assert_true(is_huge(tb, OFFSET + HUGE));
}

/* get_user_pages() must refuse these pages, too; vmsplice() takes its fast path. */
static void test_no_gup(void)
{
    g_autoptr(Testbed) tb = NULL;
    struct iovec part;
    int pipe_fd[2];

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    show_memory(tb, MEMORY_UDMABUF_HUGE, OFFSET);
    g_assert_true(is_huge(tb, OFFSET));
    part = (struct iovec){(void *)(tb->window + OFFSET), PAGE_BYTES};
    g_assert_cmpint(pipe(pipe_fd), ==, 0);
    g_assert_cmpint(vmsplice(pipe_fd[1], &part, 1, 0), ==, -1);
    g_assert_cmpint(errno, ==, EFAULT);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

/* A VMM that unmaps a page of it keeps the others. */
static void test_split(void)
{
    g_autoptr(Testbed) tb = NULL;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    show_memory(tb, MEMORY_UDMABUF_HUGE, OFFSET);
    g_assert_cmpint(munmap((void *)(tb->window + OFFSET + 5 * PAGE_BYTES), PAGE_BYTES), ==, 0);
    for (uint64_t page = 6; page < SIZE / PAGE_BYTES; page++)
        assert_window_pattern(tb, OFFSET + page * PAGE_BYTES, page);
    g_assert_false(is_huge(tb, OFFSET));
    g_assert_true(is_huge(tb, OFFSET + HUGE));
}

typedef struct {
    const Testbed *tb;
    int over;         /* atomic */
    unsigned seen[2]; /* pages of the engine, blank ones */
} Looking;

/* From the end, so that two threads meet in one PMD. */
static void *look_backwards(void *data)
{
    Looking *looking = data;

    while (!g_atomic_int_get(&looking->over))
        for (uint64_t page = SIZE / PAGE_BYTES; page-- > 0;)
            (void)*(volatile uint32_t *)(looking->tb->window + OFFSET + page * PAGE_BYTES);
    return NULL;
}

static void look_at_memory(Looking *looking)
{
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++) {
        uint32_t word = *(volatile uint32_t *)(looking->tb->window + OFFSET + page * PAGE_BYTES);
        bool blank = word == (uint32_t)VGPU_WINDOW_BLANK;

        if (!blank && word != memory_pattern(page, 0))
            g_error("page %u of the window shows 0x%08x, which nobody has written", (unsigned)page,
                    word);
        looking->seen[blank]++;
    }
}

static void publish_and_unpublish(EnginePeer *engine, uint64_t addr)
{
    for (unsigned i = 0; i < 60; i++) {
        if (peer_publish(engine, OFFSET, SIZE, addr))
            _exit(1);
        g_usleep(i % 4 * 1000);
        if (peer_unpublish(engine, OFFSET, SIZE))
            _exit(2);
    }
    _exit(0);
}

/* Whoever touches the window sees the engine's memory or nothing, whatever is mapped meanwhile. */
static void test_race(void)
{
    g_autoptr(Testbed) tb = NULL;
    Looking looking = {0};
    GThread *thread;
    uint64_t addr;
    int status = 0;
    pid_t pid;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    assert_ok(peer_alloc(tb->engine, MEMORY_UDMABUF_HUGE, SIZE, &addr));
    pid = fork();
    if (pid == 0)
        publish_and_unpublish(tb->engine, addr);
    looking.tb = tb;
    thread = g_thread_new("look", look_backwards, &looking);
    while (waitpid(pid, &status, WNOHANG) == 0)
        look_at_memory(&looking);
    g_atomic_int_set(&looking.over, 1);
    g_thread_join(thread);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpuint(looking.seen[0], >, 0);
    g_assert_cmpuint(looking.seen[1], >, 0);
    g_test_message("%u pages of the engine, %u blank ones", looking.seen[0], looking.seen[1]);
}

/* Two threads touch the same 2 MiB at once: one can wait, and gets all of it; the other can't. */
#define MEET_ROUNDS 100
#define MEET_PLACES (TESTBED_WINDOW / HUGE)

typedef struct {
    const Testbed *tb;
    int place;    /* atomic: that both touch next; negative: the end */
    int answered; /* atomic: the last one that the other thread has touched */
    unsigned delay;
    unsigned no_memory;
} Meeting;

/*
 * A futex's fault may not drop the mmap_lock, so the window gets a page table for it, unless
 * another thread has got all of its 2 MiB meanwhile.
 */
static void touch_without_waiting(Meeting *meeting, int place)
{
    uint32_t own = 0;
    uint32_t *word = (uint32_t *)(meeting->tb->window + (uint64_t)place * HUGE + PAGE_BYTES);

    if (syscall(SYS_futex, &own, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, word,
                FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) < 0 &&
        errno != EFAULT)
        meeting->no_memory++;
}

static void *meet_without_waiting(void *data)
{
    Meeting *meeting = data;
    int done = -1, place;

    while ((place = g_atomic_int_get(&meeting->place)) != G_MAXINT) {
        if (place == done)
            continue;
        for (volatile unsigned spin = 0; spin < meeting->delay; spin++)
            ;
        touch_without_waiting(meeting, place % (int)MEET_PLACES);
        done = place;
        g_atomic_int_set(&meeting->answered, done);
    }
    return NULL;
}

/* A page table for what is mapped as a whole is an error, of which the kernel would warn, too. */
static void test_table_of_whole(void)
{
    g_autoptr(Testbed) tb = NULL;
    Meeting meeting = {.place = -1, .answered = -1};
    GThread *thread;
    unsigned whole = 0;
    uint64_t addr;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    assert_ok(peer_alloc(tb->engine, MEMORY_UDMABUF_HUGE, SIZE, &addr));
    for (uint64_t offset = 0; offset < TESTBED_WINDOW; offset += SIZE)
        assert_ok(peer_publish(tb->engine, offset, SIZE, addr));
    meeting.tb = tb;
    map_window(tb, 0);
    thread = g_thread_new("meet", meet_without_waiting, &meeting);
    for (int at = 0; at < MEET_ROUNDS * (int)MEET_PLACES; at++) {
        uint64_t offset = (uint64_t)at % MEET_PLACES * HUGE;

        /* Without the page tables of the last round. */
        if (at && !offset) {
            munmap((void *)tb->window, TESTBED_WINDOW);
            map_window(tb, 0);
            if (at / (int)MEET_PLACES % 25 == 0)
                g_printerr("# %d rounds\n", at / (int)MEET_PLACES);
        }
        meeting.delay = (unsigned)at * 7919u % 20000u;
        g_atomic_int_set(&meeting.place, at);
        (void)*(volatile uint32_t *)(tb->window + offset);
        while (g_atomic_int_get(&meeting.answered) != at)
            g_thread_yield();
        whole += is_huge(tb, offset);
    }
    g_atomic_int_set(&meeting.place, G_MAXINT);
    g_thread_join(thread);
    g_test_message("%u of %u as a whole", whole, MEET_ROUNDS * (unsigned)MEET_PLACES);
    g_assert_cmpuint(whole, >, 0);
    g_assert_cmpuint(meeting.no_memory, ==, 0);
}

static void assert_by_pages(MemoryKind kind, uint64_t offset, uint64_t shift)
{
    g_autoptr(Testbed) tb = NULL;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, shift);
    show_memory(tb, kind, offset);
    for (uint64_t at = OFFSET; at < OFFSET + 2 * SIZE; at += HUGE)
        g_assert_false(is_huge(tb, at - shift));
}

static void test_offset(void)
{
    assert_by_pages(MEMORY_UDMABUF_HUGE, OFFSET + PAGE_BYTES, 0);
}

static void test_address(void)
{
    assert_by_pages(MEMORY_UDMABUF_HUGE, OFFSET, PAGE_BYTES);
}

/* Shared memory can be taken away page by page, and is mapped so. */
static void test_memfd(void)
{
    assert_by_pages(MEMORY_MEMFD, OFFSET, 0);
}

/* Memory that begins as a huge page does, but is in two pieces. */
static void test_pieces(void)
{
    const uint64_t half = HUGE / PAGE_BYTES / 2;
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;

    require_huge();
    tb = testbed_new(TESTBED_AT_GUEST);
    map_window(tb, 0);
    assert_ok(peer_alloc(tb->engine, MEMORY_UDMABUF_TWICE, HUGE, &addr));
    assert_ok(peer_publish(tb->engine, OFFSET, HUGE, addr));
    for (uint64_t page = 0; page < 2 * half; page++)
        assert_window_pattern(tb, OFFSET + page * PAGE_BYTES, half + page % half);
    g_assert_false(is_huge(tb, OFFSET));
}

/* A guest's address could not be aligned as this is, so KVM would not use it. */
static void test_both_shifted(void)
{
    assert_by_pages(MEMORY_UDMABUF_HUGE, OFFSET - PAGE_BYTES, PAGE_BYTES);
}

int main(int argc, char **argv)
{
    int status;

    driver_test_init(argc, argv);
    driver_test_add("/window-huge/aligned", test_aligned);
    driver_test_add("/window-huge/second-run", test_second_run);
    driver_test_add("/window-huge/hole", test_hole);
    driver_test_add("/window-huge/no-gup", test_no_gup);
    driver_test_add("/window-huge/split", test_split);
    driver_test_add("/window-huge/offset", test_offset);
    driver_test_add("/window-huge/address", test_address);
    driver_test_add("/window-huge/both-shifted", test_both_shifted);
    driver_test_add("/window-huge/pieces", test_pieces);
    driver_test_add("/window-huge/memfd", test_memfd);
    driver_test_add("/window-huge/race", test_race);
    driver_test_add("/window-huge/table-of-whole", test_table_of_whole);
    status = driver_test_run();
    g_file_set_contents_full(HUGE_PAGES, "0", -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL);
    return status;
}
