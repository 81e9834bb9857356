"""A command that does not want to die: each argument after the first is one way of staying alive.

usage: wild.py NAME WAY…      NAME only marks the processes, so that a test can find them
"""

import ctypes
import os
import signal
import sys
import time

NAME = sys.argv[1]


def deafen() -> None:
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue


def sleep_on() -> None:
    while True:
        time.sleep(60)


def as_child(life) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 any of the lives below
    if os.fork() == 0:
        try:
            life()
            sleep_on()
        finally:
            os._exit(0)


def daemon() -> None:
    """Double fork, session of its own, no descriptors, deaf to all that can be ignored."""
    os.setsid()
    if os.fork():
        os._exit(0)
    deafen()
    os.closerange(0, 100)
    sleep_on()


def nameless() -> None:
    """A new program without a word of environment, in a session of its own."""
    os.setsid()
    os.execve(
        sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", NAME], {}
    )


def stopped() -> None:
    """A process that is stopped, and a stopped child of it."""
    os.fork()
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep_on()


def hydra() -> None:
    """Two new ones for every interrupt or termination."""

    def sprout(_number: int, _frame: object) -> None:
        for _ in range(2):
            if os.fork() == 0:
                deafen()
                sleep_on()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, sprout)


def runaway() -> None:
    """Forks and exits without end: nobody is there long enough to be looked at."""
    deafen()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)
        os.setsid()


def dynasty() -> None:
    """Each keeps having children, up to a number, and its children do."""
    deafen()
    for _ in range(4):
        if os.fork() == 0:
            for _ in range(3):
                os.fork()
            sleep_on()
        time.sleep(0.002)
    sleep_on()


def headless() -> None:
    """A process whose first thread is gone: it looks like a zombie and is none."""
    import threading

    threading.Thread(target=sleep_on, daemon=True).start()
    ctypes.CDLL(None).syscall(60, 0)


def foster() -> None:
    """A subreaper of its own, which collects orphans."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    for _ in range(3):
        as_child(daemon)
    deafen()
    sleep_on()


WAYS = {
    way.__name__: way
    for way in (daemon, nameless, stopped, hydra, runaway, dynasty, headless, foster)
}

if __name__ == "__main__":
    *ways, ending = sys.argv[2:]
    for way in ways:
        as_child(WAYS[way])
    {"leave": time.tzset, "deaf": deafen, "hydra": hydra}[ending]()
    os.write(1, b"wild\n")
    time.sleep(0.05)
    if ending != "leave":
        sleep_on()
