#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Saves and restores the machine behind a QMP socket, or asks its monitor.

qmp.py SOCKET save FILE      stops it, writes its state, lets it go on
qmp.py SOCKET restore FILE   for one that was started with -incoming defer
qmp.py SOCKET monitor LINE   prints what the monitor answers
qmp.py SOCKET on-reboot WHAT what it does when the guest reboots: reset, or shutdown
"""

import json
import socket
import sys
import time


class Qmp:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rw")
        self.stream.readline()
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

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
    print(qmp.call("human-monitor-command", **{"command-line": line}), end="")


def on_reboot(qmp, what):
    qmp.call("set-action", reboot=what)


VERBS = {"save": save, "restore": restore, "monitor": monitor, "on-reboot": on_reboot}
path, verb, argument = sys.argv[1:4]
VERBS[verb](Qmp(path), argument)
