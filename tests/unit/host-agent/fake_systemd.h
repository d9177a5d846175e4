/* SPDX-License-Identifier: MIT */
/*
 * What vgpud asks of systemd on the bus, written down and not done.
 */
#ifndef TESTS_UNIT_FAKE_SYSTEMD_H
#define TESTS_UNIT_FAKE_SYSTEMD_H

#include <gio/gio.h>

/**
 * FakeSystemd
 * @stopped, @started: a line for each unit that was to be stopped, started
 * @set, @reverted: a line for each call that was to set properties, or to take them back
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
