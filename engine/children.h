/* SPDX-License-Identifier: MIT */
/*
 * Processes of this unit whose parent is this process. A process that render workers leave behind
 * becomes one of them, if this process has said so (PR_SET_CHILD_SUBREAPER).
 */
#ifndef ENGINE_CHILDREN_H
#define ENGINE_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes this process the parent of what its descendants leave behind. */
void children_adopt(void);

/* The one child that there is; 0: none, or several, or the kernel does not say. */
pid_t children_only(void);

/*
 * Kills all but those that @keep wants, and returns how many there were, with those that are dead
 * and were not waited for. Their end is a SIGCHLD; processes below them are children of this
 * process then. Of the main thread.
 */
unsigned int children_kill(bool (*keep)(pid_t pid, const void *data), const void *data);

/* The same, of all children of a child, which waits for them. */
unsigned int children_kill_of(pid_t parent);

#endif /* ENGINE_CHILDREN_H */
