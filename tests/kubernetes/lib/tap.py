# SPDX-License-Identifier: MIT
"""TAP for tests in Python: points, and a number that a point is about."""
import sys
import time
import traceback

count = failed = 0


def ok(condition, name):
    global count, failed
    count += 1
    failed += not condition
    print(f"{'ok' if condition else 'not ok'} {count} - {name}", flush=True)
    return condition


def same(found, wanted, name):
    if not ok(found == wanted, name):
        print(f'# found  {found!r}\n# wanted {wanted!r}', flush=True)
    return found == wanted


def note(text):
    for line in str(text).splitlines():
        print('# ' + line, flush=True)


def within(seconds, check, name=None):
    """Seconds until check() was true; None: it was not. With a name that is a point."""
    begun = time.monotonic()
    while True:
        if check():
            took = time.monotonic() - begun
            break
        if time.monotonic() - begun > seconds:
            took = None
            break
        time.sleep(0.01)
    if name:
        ok(took is not None, name)
    return took


def run(main):
    """Runs the test; what it raises is a failure, and not the end of the output."""
    global failed
    try:
        main()
    except BaseException:
        failed += 1
        note(traceback.format_exc())
        print(f'not ok {count + 1} - it ran to its end', flush=True)
        print(f'1..{count + 1}', flush=True)
    else:
        print(f'1..{count}', flush=True)
    sys.stdout.flush()
    sys.exit(bool(failed))
