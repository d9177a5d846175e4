#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Saves and restores the machine behind a QMP socket.

qmp.py SOCKET save FILE      stops it, writes its state, lets it go on
qmp.py SOCKET restore FILE   for one that was started with -incoming defer
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


def main():
    path, verb, file = sys.argv[1:4]
    qmp = Qmp(path)
    qmp.prepare()
    if verb == "save":
        qmp.call("stop")
        qmp.call("migrate", uri=f"file:{file}")
        qmp.wait()
    else:
        qmp.call("migrate-incoming", uri=f"file:{file}")
        qmp.wait()
        qmp.call("cont")


main()
