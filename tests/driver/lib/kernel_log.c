/* SPDX-License-Identifier: MIT */
/* Watches the kernel's log for reports of its checkers. */
#include "kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TROUBLE_FILE "kernel-log.trouble"
#define ALLOWED_FILE "kernel-log.allowed"
/* Lines of a report after its first: enough for the stack. */
#define REPORT_LINES 60
/* Many reports have this line inside. */
#define STACK "Call Trace:"
/* Number of reports shown: the first one matters, the others often follow from it. */
#define SHOWN_REPORTS 2

static GRegex *trouble;
static GRegex *allowed;

static char *read_list(const char *name)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = g_path_get_dirname(self);
    g_autofree char *path = g_build_filename(dir, name, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        g_error("%s is missing: without it no report would be seen", path);
    return text;
}

/* The expression of a line of kernel-log.allowed, if it is for this kernel. */
static const char *for_this_kernel(char *line)
{
    struct utsname kernel;
    char *expression = strchr(line, ' ');

    if (!expression)
        g_error("%s: \"%s\" has no expression", ALLOWED_FILE, line);
    *expression++ = '\0';
    uname(&kernel);
    return g_pattern_match_simple(line, kernel.release) ? expression : NULL;
}

/* One expression that matches if any of the file's lines does. */
static GRegex *compile_list(const char *name, bool with_kernel)
{
    g_autofree char *text = read_list(name);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) all = g_string_new("(?!)");
    GError *error = NULL;
    GRegex *regex;

    for (char **line = lines; *line; line++) {
        const char *expression = *line;

        if (!**line || **line == '#')
            continue;
        if (with_kernel)
            expression = for_this_kernel(*line);
        if (expression)
            g_string_append_printf(all, "|(?:%s)", expression);
    }
    regex = g_regex_new(all->str, G_REGEX_OPTIMIZE | G_REGEX_RAW, 0, &error);
    if (!regex)
        g_error("%s: %s", name, error->message);
    return regex;
}

static int open_log(void)
{
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (!trouble) {
        trouble = compile_list(TROUBLE_FILE, false);
        allowed = compile_list(ALLOWED_FILE, true);
    }
    return fd < 0 ? -errno : fd;
}

int kernel_log_open(void)
{
    int fd = open_log();

    if (fd >= 0)
        lseek(fd, 0, SEEK_END);
    return fd;
}

int kernel_log_open_whole(void)
{
    int fd = open_log();

    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

static GPtrArray *read_lines(int fd)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    char record[8192];
    ssize_t n;

    while ((n = read(fd, record, sizeof(record) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
        char *text;

        if (n < 0) {
            g_ptr_array_add(lines, g_strdup("WARNING: records of the log were lost to this test"));
            continue;
        }
        record[n] = '\0';
        text = strchr(record, ';');
        text = text ? text + 1 : record;
        text[strcspn(text, "\n")] = '\0';
        g_ptr_array_add(lines, g_strdup(text));
    }
    return lines;
}

static bool is_trouble(const GPtrArray *lines, guint i)
{
    return g_regex_match(trouble, lines->pdata[i], 0, NULL);
}

static guint end_of_report(const GPtrArray *lines, guint begin)
{
    return MIN(begin + REPORT_LINES, lines->len);
}

/* A stack in the report has a function of the driver. */
static bool is_ours(const GPtrArray *lines, guint begin)
{
    for (guint i = begin; i < end_of_report(lines, begin); i++) {
        if (strstr(lines->pdata[i], "[mdev_vgpu]"))
            return true;
    }
    return false;
}

static bool is_allowed(const GPtrArray *lines, guint begin)
{
    return g_regex_match(allowed, lines->pdata[begin], 0, NULL) && !is_ours(lines, begin);
}

static void show_report(const GPtrArray *lines, guint begin)
{
    for (guint i = begin; i < end_of_report(lines, begin); i++)
        g_printerr("# kernel: %s\n", (const char *)lines->pdata[i]);
}

static unsigned scan_lines(const GPtrArray *lines, unsigned shown)
{
    unsigned reports = 0;
    guint end = 0;

    for (guint i = 0; i < lines->len; i++) {
        if (!is_trouble(lines, i))
            continue;
        if (i < end && strstr(lines->pdata[i], STACK))
            continue; /* of the previous report */
        end = end_of_report(lines, i);
        if (!is_allowed(lines, i) && ++reports <= shown)
            show_report(lines, i);
    }
    return reports;
}

unsigned kernel_log_count(const GPtrArray *lines)
{
    return scan_lines(lines, 0);
}

unsigned kernel_log_check(int fd)
{
    g_autoptr(GPtrArray) lines = read_lines(fd);

    return scan_lines(lines, SHOWN_REPORTS);
}
