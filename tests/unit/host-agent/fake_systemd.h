/* SPDX-License-Identifier: MIT */
/* vgpud's calls to systemd on the bus, recorded and not executed. */
#ifndef TESTS_UNIT_FAKE_SYSTEMD_H
#define TESTS_UNIT_FAKE_SYSTEMD_H

#include <gio/gio.h>

/**
 * FakeSystemd
 * @stopped, @started: a line for each call to stop or start a unit
 * @set, @reverted: a line for each call to set or revert properties
 * @refuses: to set properties
 */
typedef struct {
    GDBusConnection *bus;
    guint owner;
    guint object;
    GString *stopped;
    GString *started;
    GString *set;
    GString *reverted;
    gboolean refuses;
} FakeSystemd;

/* On @daemon's bus. */
void fake_systemd_start(FakeSystemd *systemd, GTestDBus *daemon);

void fake_systemd_stop(FakeSystemd *systemd);

#endif
