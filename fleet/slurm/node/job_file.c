/* SPDX-License-Identifier: MIT */
#include "fleet/slurm/node/job_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int job_file_read(unsigned job, char *text)
{
    char path[256];
    ssize_t length, part;
    int fd;

    snprintf(path, sizeof(path), FLEET_JOBS_DIR "/%u", job);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    for (length = 0; (part = read(fd, text + length, (size_t)(JOB_FILE_MAX - length))) > 0;)
        length += part;
    close(fd);
    if (part < 0 || length == JOB_FILE_MAX) {
        errno = part < 0 ? errno : EFBIG;
        return -1;
    }
    text[length] = 0;
    return 0;
}

/* "card INDEX TASKS" */
static bool is_card(const char *line, unsigned *index, unsigned *tasks)
{
    return sscanf(line, "card %u %u", index, tasks) == 2;
}

/* The place of the @local'th task among all places; the text stays whole. */
static unsigned place_of(const char *text, unsigned local)
{
    unsigned index, tasks, places = 0;

    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (is_card(at, &index, &tasks))
            places += tasks;
    }
    return places ? local % places : local;
}

bool job_file_task(char *text, int card, unsigned local,
                   bool (*each)(const char *name, const char *value, void *data), void *data)
{
    unsigned before = 0, place = place_of(text, local), index, tasks;
    char *rest = text, *line = strsep(&rest, "\n");
    bool ours = false, found = false;

    if (strcmp(line, JOB_FILE_VERSION))
        return false;
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, '=');

        if (is_card(line, &index, &tasks)) {
            before += tasks;
            ours = !found && (card >= 0 ? index == (unsigned)card : place < before);
            found = found || ours;
        } else if (value) {
            *value++ = 0;
            if (ours && !each(line, value, data))
                return false;
        } else if (*line) {
            return false;
        }
    }
    return found;
}

const char *job_file_refused(const char *text)
{
    static const char begin[] = JOB_FILE_VERSION "\n" JOB_FILE_REFUSED;

    return strncmp(text, begin, sizeof(begin) - 1) ? NULL : text + sizeof(begin) - 1;
}
