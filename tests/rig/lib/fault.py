#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves the rig's one known fault from outside: a processor of L1 that gets no interrupts any more.

fault.py live SOCKET          looks twice, a second apart, through QEMU's monitor
fault.py sample SOCKET        prints one look, to be kept
fault.py tell SAMPLE          says of each processor in a look what it does, a line each
fault.py recorded FIRST SECOND    judges two looks that were kept

Exit status 0 and a sentence if the fault is proven, 1 if it is not, or if QEMU does not answer.

Under QEMU's TCG a processor now and then takes an interrupt and never ends it. So far it was the timer's.
Its local APIC then has that vector in service and others pending that it holds back, for good, and
the processor sleeps with interrupts on. A kernel cannot bring this about: one that is busy in an
interrupt is not halted, and one that is halted has ended the interrupt.
"""

import re
import sys
import time

from qmp import Qmp

INTERRUPTS_ON = 1 << 9  # EFLAGS.IF
APART_S = 1.2


def take_sample(qmp):
    """All processors' registers and APICs, as the monitor prints them."""
    registers = qmp.monitor("info registers -a").replace("\r", "")
    parts = ["== info registers -a\n" + registers]
    for number in sorted(processors(registers)):
        parts.append(f"== info lapic {number}\n" + qmp.monitor(f"info lapic {number}").replace("\r", ""))
    return "\n".join(parts)


def processors(sample):
    """Number to (halted, interrupts on)."""
    found = {}
    for block in re.split(r"^CPU#", sample, flags=re.M)[1:]:
        number = int(re.match(r"\d+", block)[0])
        flags = re.search(r"\b[RE]FL=([0-9a-f]+)", block)
        halted = re.search(r"\bHLT=([01])", block)
        if flags and halted:
            found[number] = (halted[1] == "1", bool(int(flags[1], 16) & INTERRUPTS_ON))
    return found


def vectors(apic, register):
    line = re.search(rf"^{register}\s+(.*)$", apic, flags=re.M)
    return {int(word) for word in re.findall(r"(?<![\w.])\d+", line[1])} if line else set()


def interrupts(sample):
    """Number to (vectors in service, vectors pending)."""
    blocks = re.split(r"^dumping local APIC state for CPU ", sample, flags=re.M)[1:]
    return {int(re.match(r"\d+", block)[0]): (vectors(block, "ISR"), vectors(block, "IRR")) for block in blocks}


def holds_back(vector, pending):
    """An interrupt in service holds back those of its class, which is its upper four bits, and below."""
    return any(other >> 4 <= vector >> 4 for other in pending)


def stuck(sample):
    """(processor, vector) that are in the state which the fault leaves."""
    asleep = {number for number, (halted, on) in processors(sample).items() if halted and on}
    return {(number, vector) for number, (in_service, pending) in interrupts(sample).items()
            for vector in in_service if number in asleep and holds_back(vector, pending)}


def judge(first, second):
    proven = sorted(stuck(first) & stuck(second))
    for number, vector in proven:
        print(f"processor {number} of L1 gets no interrupts of class {vector >> 4:x} and below: its local APIC has "
              f"vector 0x{vector:x} in service and others pending, while it is halted with interrupts on")
    return 0 if proven else 1


def live(path):
    qmp = Qmp(path)
    first = take_sample(qmp)
    # The healthy case, which is nearly every one, costs no second look.
    if not stuck(first):
        return 1
    time.sleep(APART_S)
    return judge(first, take_sample(qmp))


def names_of(found):
    return " ".join(f"0x{vector:x}" for vector in sorted(found)) or "none"


def tell(path):
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    registers = re.split(r"^CPU#", text, flags=re.M)[1:]
    where = {int(re.match(r"\d+", block)[0]): re.search(r"\b[RE]IP=([0-9a-f]+)", block) for block in registers}
    vectors_of = interrupts(text)
    for number, (halted, on) in sorted(processors(text).items()):
        in_service, pending = vectors_of.get(number, (set(), set()))
        print(f"processor {number} of L1 {'is halted' if halted else 'runs'} at {where[number][1] if where[number] else '?'}, "
              f"interrupts {'on' if on else 'off'}; vectors in service: {names_of(in_service)}, "
              f"pending: {names_of(pending)}")
    return 0


def sample(path):
    print(take_sample(Qmp(path)))
    return 0


def recorded(first, second):
    with open(first, encoding="utf-8") as one, open(second, encoding="utf-8") as two:
        return judge(one.read(), two.read())


if __name__ == "__main__":
    sys.exit({"live": live, "sample": sample, "tell": tell, "recorded": recorded}[sys.argv[1]](*sys.argv[2:]))
