#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Saves and restores the machine behind a QMP socket, or asks its monitor.

qmp.py SOCKET save FILE      stops it, writes its state, starts it again
qmp.py SOCKET restore FILE   for a QEMU that was started with -incoming defer
qmp.py SOCKET monitor LINE   prints what the monitor answers
qmp.py SOCKET on-reboot WHAT what QEMU does when the guest reboots: reset, or shutdown
"""

import json
import socket
import sys
import time

# A QEMU that has ended, or that hangs, must end the caller too. Saving flushes disks first.
PATIENCE_S = {"save": 120, "restore": 120}
PATIENCE_DEFAULT_S = 10


class Qmp:
    def __init__(self, path, patience=PATIENCE_DEFAULT_S):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience)
        try:
            self.socket.connect(path)
        except OSError as error:
            sys.exit(f"cannot connect to QEMU at {path}: {error.strerror or error}")
        self.stream = self.socket.makefile("rw")
        self.read()
        self.call("qmp_capabilities")

    def read(self):
        try:
            line = self.stream.readline()
        except OSError:
            sys.exit("QEMU does not answer")
        if not line:
            sys.exit("QEMU closed the connection")
        return json.loads(line)

    def call(self, command, **arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = self.read()
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def monitor(self, line):
        return self.call("human-monitor-command", **{"command-line": line})

    def prepare(self):
        # The file holds pages at fixed places: what was never touched costs nothing.
        self.call("migrate-set-capabilities",
                  capabilities=[{"capability": "mapped-ram", "state": True}])
        self.call("migrate-set-parameters", **{"max-bandwidth": 1 << 40})

    def wait(self):
        while True:
            state = self.call("query-migrate")
            if state.get("status") == "completed":
                return
            if state.get("status") in ("failed", "cancelled"):
                sys.exit(f"migration {state['status']}: {state.get('error-desc', 'no reason given')}")
            time.sleep(0.05)


def save(qmp, file):
    qmp.prepare()
    qmp.call("stop")
    qmp.call("migrate", uri=f"file:{file}")
    qmp.wait()


def restore(qmp, file):
    qmp.prepare()
    qmp.call("migrate-incoming", uri=f"file:{file}")
    qmp.wait()
    qmp.call("cont")


def monitor(qmp, line):
    print(qmp.monitor(line), end="")


def on_reboot(qmp, what):
    qmp.call("set-action", reboot=what)


VERBS = {"save": save, "restore": restore, "monitor": monitor, "on-reboot": on_reboot}

if __name__ == "__main__":
    path, verb, argument = sys.argv[1:4]
    VERBS[verb](Qmp(path, PATIENCE_S.get(verb, PATIENCE_DEFAULT_S)), argument)
