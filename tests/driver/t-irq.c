/* SPDX-License-Identifier: MIT */
/* Interrupts: VFIO_DEVICE_SET_IRQS in all the forms that VMMs use, and the delivered interrupts. */
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbed.h"

#define MSIX          VFIO_PCI_MSIX_IRQ_INDEX
#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)
#define SHORT_MS      300
#define LONG_MS       10000

static void trip_with_interrupt(Testbed *tb, uint64_t fence_id)
{
    guest_queue_want_interrupt(&tb->guest.queue[0], true);
    assert_round_trip(tb, fence_id);
}

static void drain_eventfds(Testbed *tb)
{
    for (unsigned i = 0; i < GUEST_NUM_VECTORS; i++)
        vmm_eventfd_take(tb->guest.vector_fd[i], 0);
}

static void test_queue_interrupt(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    trip_with_interrupt(tb, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[0], 0), ==, 0);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[2], 0), ==, 0);
}

/* QEMU sets vectors one by one, when the guest unmasks them, and removes them in the same way. */
static void test_in_pieces(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    int none = -1, other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    assert_ok(vmm_set_irqs(&tb->dev, MSIX, 1, 1, &none));
    trip_with_interrupt(tb, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], SHORT_MS), ==, 0);

    assert_ok(vmm_set_irqs(&tb->dev, MSIX, 1, 1, &other));
    trip_with_interrupt(tb, 2);
    g_assert_cmpuint(vmm_eventfd_take(other, LONG_MS), ==, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], 0), ==, 0);

    assert_ok(vmm_set_irqs(&tb->dev, MSIX, 0, 2, tb->guest.vector_fd));
    trip_with_interrupt(tb, 3);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
    g_assert_cmpuint(vmm_eventfd_take(other, 0), ==, 0);
    close(other);
}

/* count 0, no data: all of them off. */
static void test_disable_all(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    assert_ok(
        vmm_irq_action(&tb->dev, MSIX, 0, 0, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER));
    trip_with_interrupt(tb, 1);
    for (unsigned i = 0; i < GUEST_NUM_VECTORS; i++)
        g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[i], SHORT_MS), ==, 0);
    assert_ok(vmm_set_irqs(&tb->dev, MSIX, 0, GUEST_NUM_VECTORS, tb->guest.vector_fd));
    trip_with_interrupt(tb, 2);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
}

/* A VMM can fire vectors itself, all or a selection of them. */
static void test_trigger(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    drain_eventfds(tb);
    assert_ok(
        vmm_irq_action(&tb->dev, MSIX, 1, 1, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER));
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
    assert_ok(
        vmm_irq_action(&tb->dev, MSIX, 0, 3, VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER));
    for (unsigned i = 0; i < GUEST_NUM_VECTORS; i++)
        g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[i], LONG_MS), ==, 1);
    assert_ok(vmm_irq_action(&tb->dev, VFIO_PCI_REQ_IRQ_INDEX, 0, 1,
                             VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER));
    g_assert_cmpuint(vmm_eventfd_take(tb->request_fd, LONG_MS), ==, 1);
}

static void test_refusals(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    int fds[GUEST_NUM_VECTORS + 1] = {-1, -1, -1, -1};
    int not_eventfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const uint32_t trigger = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;

    assert_fails(vmm_set_irqs(&tb->dev, MSIX, 0, GUEST_NUM_VECTORS + 1, fds), EINVAL);
    assert_fails(vmm_set_irqs(&tb->dev, MSIX, GUEST_NUM_VECTORS, 1, fds), EINVAL);
    assert_fails(vmm_set_irqs(&tb->dev, MSIX, UINT32_MAX, 1, fds), EINVAL);
    g_assert_cmpint(vmm_set_irqs(&tb->dev, MSIX, 0, 1, &not_eventfd), <, 0);
    g_assert_cmpint(vmm_set_irqs(&tb->dev, 99, 0, 1, fds), <, 0);
    g_assert_cmpint(vmm_set_irqs(&tb->dev, VFIO_PCI_INTX_IRQ_INDEX, 0, 1, fds), <, 0);
    g_assert_cmpint(vmm_irq_action(&tb->dev, MSIX, 0, 1, trigger | VFIO_IRQ_SET_DATA_BOOL), <, 0);
    close(not_eventfd);

    /* Refused calls changed nothing. */
    trip_with_interrupt(tb, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
}

/* A queue without a vector causes no interrupt, but the ISR has its bit. */
static void test_no_vector(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Guest *guest = &tb->guest;

    guest_reset(guest);
    g_assert_true(guest_negotiate(guest, GUEST_FEATURES));
    for (unsigned i = 0; i < GUEST_NUM_QUEUES; i++)
        guest_queue_setup(guest, i, GUEST_QUEUE_SIZE);
    guest_reg_write(guest, &guest->common, COMMON(queue_select), 0, 2);
    guest_reg_write(guest, &guest->common, COMMON(queue_msix_vector), VIRTIO_MSI_NO_VECTOR, 2);
    g_assert_cmphex(guest_reg_read(guest, &guest->common, COMMON(queue_msix_vector), 2), ==,
                    VIRTIO_MSI_NO_VECTOR);
    /* A vector that does not exist reads back as none. */
    guest_reg_write(guest, &guest->common, COMMON(msix_config), 1000, 2);
    g_assert_cmphex(guest_reg_read(guest, &guest->common, COMMON(msix_config), 2), ==,
                    VIRTIO_MSI_NO_VECTOR);
    guest_set_status(guest, guest_status(guest) | VIRTIO_CONFIG_S_DRIVER_OK);
    drain_eventfds(tb);
    guest_reg_read(guest, &guest->isr, 0, 1);
    trip_with_interrupt(tb, 1);
    for (unsigned i = 0; i < GUEST_NUM_VECTORS; i++)
        g_assert_cmpuint(vmm_eventfd_take(guest->vector_fd[i], SHORT_MS), ==, 0);
}

static void test_event_idx_suppresses(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[0];

    drain_eventfds(tb);
    for (unsigned i = 1; i <= 4; i++) {
        guest_queue_want_interrupt(q, false);
        assert_round_trip(tb, i);
    }
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], SHORT_MS), ==, 0);
    trip_with_interrupt(tb, 5);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
}

/* The same for a guest that has not negotiated EVENT_IDX. */
static void test_flag_suppresses(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[0];

    guest_up(&tb->guest, GUEST_FEATURES & ~(1ull << VIRTIO_RING_F_EVENT_IDX));
    drain_eventfds(tb);
    guest_queue_want_interrupt(q, false);
    assert_round_trip(tb, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], SHORT_MS), ==, 0);
    guest_queue_want_interrupt(q, true);
    assert_round_trip(tb, 2);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
}

/* A device reset keeps the VMM's eventfds: QEMU does not set them again. */
static void test_survives_guest_reset(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    guest_up(&tb->guest, GUEST_FEATURES);
    drain_eventfds(tb);
    trip_with_interrupt(tb, 1);
    g_assert_cmpuint(vmm_eventfd_take(tb->guest.vector_fd[1], LONG_MS), ==, 1);
}

/* Eventfds change while interrupts are being delivered. */
static void test_race(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    int none = -1;
    pid_t pid = fork();

    if (pid == 0) {
        for (;;) {
            vmm_set_irqs(&tb->dev, MSIX, 1, 1, &none);
            vmm_set_irqs(&tb->dev, MSIX, 0, GUEST_NUM_VECTORS, tb->guest.vector_fd);
        }
    }
    for (unsigned i = 1; i <= 200; i++)
        trip_with_interrupt(tb, i);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/irq/queue-interrupt", test_queue_interrupt);
    driver_test_add("/irq/in-pieces", test_in_pieces);
    driver_test_add("/irq/disable-all", test_disable_all);
    driver_test_add("/irq/trigger", test_trigger);
    driver_test_add("/irq/refusals", test_refusals);
    driver_test_add("/irq/no-vector", test_no_vector);
    driver_test_add("/irq/event-idx-suppresses", test_event_idx_suppresses);
    driver_test_add("/irq/flag-suppresses", test_flag_suppresses);
    driver_test_add("/irq/survives-guest-reset", test_survives_guest_reset);
    driver_test_add("/irq/race", test_race);
    return driver_test_run();
}
