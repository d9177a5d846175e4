/* SPDX-License-Identifier: MIT */
/* vgpud's calls to systemd on the bus, recorded and not executed. */
#ifndef TESTS_UNIT_FAKE_SYSTEMD_H
#define TESTS_UNIT_FAKE_SYSTEMD_H

#include <gio/gio.h>

/**
 * FakeSystemd
 * @stopped, @started, @restarted: a line for each call to stop, start or restart a unit
 * @made: a line for each call to make a transient unit: its name and its properties
 * @set, @reverted: a line for each call to set or revert properties
 * @units: names of transient units that were made and not stopped
 * @refuses: to set properties
 */
typedef struct {
    GDBusConnection *bus;
    guint owner;
    guint object;
    GString *stopped;
    GString *started;
    GString *restarted;
    GString *made;
    GString *set;
    GString *reverted;
    GPtrArray *units;
    gboolean refuses;
} FakeSystemd;

/* On @daemon's bus. */
void fake_systemd_start(FakeSystemd *systemd, GTestDBus *daemon);

void fake_systemd_stop(FakeSystemd *systemd);

#endif
