/* SPDX-License-Identifier: MIT */
/* The VMM's side of VFIO. */
#include "vfio_vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/iommufd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int result_of(int ret)
{
    return ret < 0 ? -errno : 0;
}

bool vmm_by_iommufd(void)
{
    const char *way = getenv("DRIVER_IOMMU");

    return way && strcmp(way, "iommufd") == 0;
}

uint64_t vmm_charged_kb(void)
{
    const char *key = vmm_by_iommufd() ? "\nVmPin:" : "\nVmLck:";
    g_autofree char *text = NULL;
    const char *line;

    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    line = strstr(text, key);
    g_assert_nonnull(line);
    return g_ascii_strtoull(line + strlen(key), NULL, 10);
}

static int ioas_new(VmmContainer *container)
{
    struct iommu_ioas_alloc alloc = {.size = sizeof(alloc)};
    int ret = result_of(ioctl(container->fd, IOMMU_IOAS_ALLOC, &alloc));

    container->ioas = alloc.out_ioas_id;
    return ret;
}

int vmm_container_open(VmmContainer *container)
{
    int ret;

    *container = (VmmContainer){.iommufd = vmm_by_iommufd()};
    container->fd = open(container->iommufd ? "/dev/iommu" : "/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
    ret = result_of(container->fd);
    if (!ret && container->iommufd)
        ret = ioas_new(container);
    return ret;
}

int vmm_container_another(const VmmContainer *first, VmmContainer *other)
{
    *other = *first;
    return ioas_new(other);
}

void vmm_container_close(VmmContainer *container)
{
    close(container->fd);
    container->fd = -1;
}

/* /dev/vfio/NUMBER of its group. */
static char *group_node(const char *sysfs_device)
{
    g_autofree char *link = g_build_filename(sysfs_device, "iommu_group", NULL);
    g_autofree char *target = g_file_read_link(link, NULL);
    g_autofree char *number = target ? g_path_get_basename(target) : NULL;

    return number ? g_build_filename("/dev/vfio", number, NULL) : NULL;
}

/* /dev/vfio/devices/vfioNUMBER of its own. */
static char *device_node(const char *sysfs_device)
{
    g_autofree char *path = g_build_filename(sysfs_device, "vfio-dev", NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name = dir ? g_dir_read_name(dir) : NULL;

    return name ? g_build_filename("/dev/vfio/devices", name, NULL) : NULL;
}

/* Takes @node. */
static int open_node(char *node)
{
    int fd = node ? open(node, O_RDWR | O_CLOEXEC) : -1;
    int ret = !node ? -ENODEV : fd < 0 ? -errno : fd;

    g_free(node);
    return ret;
}

/* Opens the group, adds it to the container and sets up the IOMMU with the first one. */
static int group_attach(VmmContainer *container, const char *sysfs_device)
{
    int group = open_node(group_node(sysfs_device));
    int ret;

    if (group < 0)
        return group;
    ret = result_of(ioctl(group, VFIO_GROUP_SET_CONTAINER, &container->fd));
    if (!ret && !container->has_iommu) {
        ret = result_of(ioctl(container->fd, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU));
        container->has_iommu = !ret;
        if (ret)
            ioctl(group, VFIO_GROUP_UNSET_CONTAINER);
    }
    if (ret) {
        close(group);
        return ret;
    }
    return group;
}

static void group_detach(int group)
{
    ioctl(group, VFIO_GROUP_UNSET_CONTAINER);
    close(group);
}

static int open_by_group(VmmContainer *container, VmmDevice *dev, const char *sysfs_device,
                         const char *name)
{
    int ret;

    dev->group = group_attach(container, sysfs_device);
    if (dev->group < 0)
        return dev->group;
    dev->fd = ioctl(dev->group, VFIO_GROUP_GET_DEVICE_FD, name);
    ret = result_of(dev->fd);
    if (ret)
        group_detach(dev->group);
    return ret;
}

int vmm_device_attach(const VmmContainer *container, const VmmDevice *dev)
{
    struct vfio_device_attach_iommufd_pt attach = {.argsz = sizeof(attach),
                                                   .pt_id = container->ioas};

    return result_of(ioctl(dev->fd, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach));
}

int vmm_device_detach(const VmmDevice *dev)
{
    struct vfio_device_detach_iommufd_pt detach = {.argsz = sizeof(detach)};

    return result_of(ioctl(dev->fd, VFIO_DEVICE_DETACH_IOMMUFD_PT, &detach));
}

static int open_by_node(VmmContainer *container, VmmDevice *dev, const char *sysfs_device)
{
    struct vfio_device_bind_iommufd bind = {.argsz = sizeof(bind), .iommufd = container->fd};
    int ret;

    dev->group = -1;
    dev->fd = open_node(device_node(sysfs_device));
    if (dev->fd < 0)
        return dev->fd;
    ret = result_of(ioctl(dev->fd, VFIO_DEVICE_BIND_IOMMUFD, &bind));
    if (!ret)
        ret = vmm_device_attach(container, dev);
    if (ret)
        close(dev->fd);
    return ret;
}

static int read_regions(VmmDevice *dev)
{
    for (unsigned i = 0; i < VFIO_PCI_NUM_REGIONS; i++) {
        dev->region[i] = (struct vfio_region_info){
            .argsz = sizeof(struct vfio_region_info),
            .index = i,
        };
        if (i == VFIO_PCI_VGA_REGION_INDEX)
            continue;
        if (ioctl(dev->fd, VFIO_DEVICE_GET_REGION_INFO, &dev->region[i]) < 0)
            return -errno;
    }
    return 0;
}

int vmm_device_open(VmmContainer *container, VmmDevice *dev, const char *sysfs_device,
                    const char *name)
{
    int ret = container->iommufd ? open_by_node(container, dev, sysfs_device)
                                 : open_by_group(container, dev, sysfs_device, name);

    if (ret)
        return ret;
    dev->info = (struct vfio_device_info){.argsz = sizeof(dev->info)};
    ret = result_of(ioctl(dev->fd, VFIO_DEVICE_GET_INFO, &dev->info));
    if (!ret)
        ret = read_regions(dev);
    if (ret)
        vmm_device_close(dev);
    return ret;
}

int vmm_vgpu_open(VmmContainer *container, VmmDevice *dev, const char *uuid)
{
    g_autofree char *sysfs = g_build_filename("/sys/bus/mdev/devices", uuid, NULL);

    return vmm_device_open(container, dev, sysfs, uuid);
}

void vmm_device_close(VmmDevice *dev)
{
    close(dev->fd);
    dev->fd = -1;
    if (dev->group >= 0)
        group_detach(dev->group);
    dev->group = -1;
}

int vmm_region_read(const VmmDevice *dev, unsigned region, uint64_t offset, void *buf, size_t len)
{
    ssize_t n = pread(dev->fd, buf, len, (off_t)(dev->region[region].offset + offset));

    if (n < 0)
        return -errno;
    return n == (ssize_t)len ? 0 : -EIO;
}

int vmm_region_write(const VmmDevice *dev, unsigned region, uint64_t offset, const void *buf,
                     size_t len)
{
    ssize_t n = pwrite(dev->fd, buf, len, (off_t)(dev->region[region].offset + offset));

    if (n < 0)
        return -errno;
    return n == (ssize_t)len ? 0 : -EIO;
}

uint32_t vmm_config_read(const VmmDevice *dev, unsigned offset, size_t len)
{
    uint32_t value = 0;
    int ret = vmm_region_read(dev, VFIO_PCI_CONFIG_REGION_INDEX, offset, &value, len);

    g_assert_cmpint(ret, ==, 0);
    return value;
}

void vmm_config_write(const VmmDevice *dev, unsigned offset, uint32_t value, size_t len)
{
    int ret = vmm_region_write(dev, VFIO_PCI_CONFIG_REGION_INDEX, offset, &value, len);

    g_assert_cmpint(ret, ==, 0);
}

void *vmm_region_mmap(const VmmDevice *dev, unsigned region, uint64_t offset, size_t size, int prot)
{
    void *addr =
        mmap(NULL, size, prot, MAP_SHARED, dev->fd, (off_t)(dev->region[region].offset + offset));

    if (addr != MAP_FAILED)
        madvise(addr, size, MADV_DONTFORK);
    return addr;
}

int vmm_ram_new(VmmRam *ram, size_t size, uint64_t iova)
{
    ram->size = size;
    ram->iova = iova;
    ram->memfd = memfd_create("guest-ram", MFD_CLOEXEC);
    if (ram->memfd < 0)
        return -errno;
    if (ftruncate(ram->memfd, (off_t)size) < 0)
        return -errno;
    ram->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ram->memfd, 0);
    if (ram->mem == MAP_FAILED)
        return -errno;
    madvise(ram->mem, size, MADV_DONTFORK);
    return 0;
}

void vmm_ram_free(VmmRam *ram)
{
    munmap(ram->mem, ram->size);
    close(ram->memfd);
    ram->mem = NULL;
    ram->memfd = -1;
}

int vmm_ram_map(VmmContainer *container, const VmmRam *ram)
{
    return vmm_dma_map(container, ram->mem, ram->iova, ram->size,
                       VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE);
}

static int ioas_map(const VmmContainer *container, void *addr, uint64_t iova, uint64_t size,
                    uint32_t flags)
{
    struct iommu_ioas_map map = {
        .size = sizeof(map),
        .flags = IOMMU_IOAS_MAP_FIXED_IOVA,
        .ioas_id = container->ioas,
        .user_va = (uintptr_t)addr,
        .length = size,
        .iova = iova,
    };

    if (flags & VFIO_DMA_MAP_FLAG_READ)
        map.flags |= IOMMU_IOAS_MAP_READABLE;
    if (flags & VFIO_DMA_MAP_FLAG_WRITE)
        map.flags |= IOMMU_IOAS_MAP_WRITEABLE;
    return result_of(ioctl(container->fd, IOMMU_IOAS_MAP, &map));
}

/* As type1: nothing there is nothing to do. */
static int ioas_unmap(const VmmContainer *container, uint64_t iova, uint64_t size)
{
    struct iommu_ioas_unmap unmap = {
        .size = sizeof(unmap), .ioas_id = container->ioas, .iova = iova, .length = size};
    int ret = result_of(ioctl(container->fd, IOMMU_IOAS_UNMAP, &unmap));

    return ret == -ENOENT ? 0 : ret;
}

int vmm_dma_map(VmmContainer *container, void *addr, uint64_t iova, uint64_t size, uint32_t flags)
{
    struct vfio_iommu_type1_dma_map map = {
        .argsz = sizeof(map),
        .flags = flags,
        .vaddr = (uintptr_t)addr,
        .iova = iova,
        .size = size,
    };

    if (container->iommufd)
        return ioas_map(container, addr, iova, size, flags);
    return result_of(ioctl(container->fd, VFIO_IOMMU_MAP_DMA, &map));
}

int vmm_dma_unmap(VmmContainer *container, uint64_t iova, uint64_t size)
{
    struct vfio_iommu_type1_dma_unmap unmap = {
        .argsz = sizeof(unmap),
        .iova = iova,
        .size = size,
    };

    if (container->iommufd)
        return ioas_unmap(container, iova, size);
    return result_of(ioctl(container->fd, VFIO_IOMMU_UNMAP_DMA, &unmap));
}

int vmm_set_irqs(const VmmDevice *dev, unsigned index, unsigned start, unsigned count,
                 const int *eventfds)
{
    size_t size = sizeof(struct vfio_irq_set) + count * sizeof(int);
    g_autofree struct vfio_irq_set *set = g_malloc0(size);

    set->argsz = (uint32_t)size;
    set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set->index = index;
    set->start = start;
    set->count = count;
    memcpy(set->data, eventfds, count * sizeof(int));
    return result_of(ioctl(dev->fd, VFIO_DEVICE_SET_IRQS, set));
}

int vmm_irq_action(const VmmDevice *dev, unsigned index, unsigned start, unsigned count,
                   uint32_t flags)
{
    bool with_data = flags & VFIO_IRQ_SET_DATA_BOOL;
    size_t size = sizeof(struct vfio_irq_set) + (with_data ? count : 0);
    g_autofree struct vfio_irq_set *set = g_malloc0(size);

    set->argsz = (uint32_t)size;
    set->flags = flags;
    set->index = index;
    set->start = start;
    set->count = count;
    if (with_data)
        memset(set->data, 1, count);
    return result_of(ioctl(dev->fd, VFIO_DEVICE_SET_IRQS, set));
}

int vmm_device_reset(const VmmDevice *dev)
{
    return result_of(ioctl(dev->fd, VFIO_DEVICE_RESET));
}

#define FEATURE_SIZE(type) (sizeof(struct vfio_device_feature) + sizeof(type))

int vmm_migration_flags(const VmmDevice *dev)
{
    uint64_t buf[8] = {0};
    struct vfio_device_feature *feature = (void *)buf;
    struct vfio_device_feature_migration *migration = (void *)feature->data;
    int ret;

    feature->argsz = FEATURE_SIZE(*migration);
    feature->flags = VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_MIGRATION;
    ret = result_of(ioctl(dev->fd, VFIO_DEVICE_FEATURE, feature));
    return ret ? ret : (int)migration->flags;
}

static int device_state(const VmmDevice *dev, uint32_t flags,
                        struct vfio_device_feature_mig_state *state)
{
    uint64_t buf[8] = {0};
    struct vfio_device_feature *feature = (void *)buf;
    int ret;

    feature->argsz = FEATURE_SIZE(*state);
    feature->flags = flags | VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE;
    memcpy(feature->data, state, sizeof(*state));
    ret = result_of(ioctl(dev->fd, VFIO_DEVICE_FEATURE, feature));
    memcpy(state, feature->data, sizeof(*state));
    return ret;
}

int vmm_migration_state(const VmmDevice *dev)
{
    struct vfio_device_feature_mig_state state = {0};
    int ret = device_state(dev, VFIO_DEVICE_FEATURE_GET, &state);

    return ret ? ret : (int)state.device_state;
}

int vmm_migration_set_state(const VmmDevice *dev, unsigned to, int *data)
{
    struct vfio_device_feature_mig_state state = {.device_state = to, .data_fd = -1};
    int ret = device_state(dev, VFIO_DEVICE_FEATURE_SET, &state);

    *data = ret ? -1 : state.data_fd;
    return ret;
}

static int dma_logging(const VmmDevice *dev, uint32_t flags, const void *arg, size_t size)
{
    uint64_t buf[16] = {0};
    struct vfio_device_feature *feature = (void *)buf;

    feature->argsz = (uint32_t)(sizeof(*feature) + size);
    feature->flags = flags;
    memcpy(feature->data, arg, size);
    return result_of(ioctl(dev->fd, VFIO_DEVICE_FEATURE, feature));
}

int vmm_log_start(const VmmDevice *dev, uint64_t iova, uint64_t size)
{
    struct vfio_device_feature_dma_logging_range range = {.iova = iova, .length = size};
    struct vfio_device_feature_dma_logging_control control = {
        .page_size = VMM_LOG_PAGE, .num_ranges = 1, .ranges = (uintptr_t)&range};

    return dma_logging(dev, VFIO_DEVICE_FEATURE_SET | VFIO_DEVICE_FEATURE_DMA_LOGGING_START,
                       &control, sizeof(control));
}

int vmm_log_stop(const VmmDevice *dev)
{
    return dma_logging(dev, VFIO_DEVICE_FEATURE_SET | VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP, NULL,
                       0);
}

int vmm_log_report(const VmmDevice *dev, uint64_t iova, uint64_t size, uint64_t *bitmap)
{
    struct vfio_device_feature_dma_logging_report report = {
        .iova = iova, .length = size, .page_size = VMM_LOG_PAGE, .bitmap = (uintptr_t)bitmap};

    return dma_logging(dev, VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT,
                       &report, sizeof(report));
}

uint64_t vmm_eventfd_take(int fd, int timeout_ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    uint64_t value = 0;

    if (poll(&pfd, 1, timeout_ms) <= 0)
        return 0;
    return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}
