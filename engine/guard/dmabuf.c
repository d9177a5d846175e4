// SPDX-License-Identifier: MIT
#include "dmabuf.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

/*
 * As in the kernel's dma_buf_show_fdinfo(), which does not count the reference that reading takes.
 */
#define COUNT "\ncount:\t"

uint64_t dmabuf_references(int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fdinfo/%d", fd);
    g_autofree char *text = NULL;
    const char *count;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    count = strstr(text, COUNT);
    return count ? g_ascii_strtoull(count + strlen(COUNT), NULL, 10) : 0;
}

uint64_t dmabuf_bytes(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);

    return end > 0 ? (uint64_t)end : 0;
}
