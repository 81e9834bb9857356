"""What warm servers of the tests rehearse, and what their forks do."""

import json
import os
import random
import signal
import threading
import time

BUILT: list[str] = []


def build() -> None:
    """Rehearse: build something that every fork then has, in a thread that has ended."""
    thread = threading.Thread(target=BUILT.append, args=("built",))
    thread.start()
    thread.join()
    signal.signal(signal.SIGUSR2, lambda *_: BUILT.append("x" * (64 << 20)))


def leave_a_thread() -> None:
    """Rehearse badly."""
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def fail() -> None:
    """Fail to rehearse."""
    raise OSError("no loopback here")


def tell(words: list[str]) -> int:
    """Print what this fork finds, and leave something behind for nobody."""
    handed_down = [
        os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)
    ]
    threads = len(os.listdir("/proc/self/task"))
    found = {
        "words": words,
        "environment": dict(os.environ),
        "built": BUILT,
        "handed_down": handed_down,
        "threads": threads,
    }
    print(json.dumps(found | {"chance": random.random(), "cwd": os.getcwd()}))
    BUILT.append("by a fork")
    os.environ["LEFT"] = "behind"
    return 7


def _is_open(fd: str) -> bool:
    return int(fd) > _STANDARD and os.path.lexists(f"/proc/self/fd/{fd}")


_STANDARD = 2


def leave(_words: list[str]) -> int:
    """Leave from deep inside."""
    raise SystemExit(75)
