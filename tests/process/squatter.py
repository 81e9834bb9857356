"""Takes pids over the moment they are free, and tells whether a signal meant for the former owner hit the new one.

usage: squatter.py PID…       prints "ready"; after a line on stdin prints "TAKEN HARMED"
"""

import os
import select
import signal
import sys

LAST_PID = "/proc/sys/kernel/ns_last_pid"


def take(pid: int) -> bool:
    """Become the parent of a new process that has `pid`; say whether that worked."""
    with open(LAST_PID, "w", encoding="ascii") as last:
        last.write(str(pid - 1))
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGUSR1,
            signal.SIGCONT,
        ):
            signal.signal(number, lambda *_: os._exit(1))
        while True:
            signal.pause()
    if child == pid:
        return True
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def is_free(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def harmed() -> int:
    """Count the squatters that were stopped or ended."""
    count = 0
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return count
        if pid == 0:
            return count
        count += 1


if __name__ == "__main__":
    wanted = {int(word) for word in sys.argv[1:]}
    taken: set[int] = set()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for pid in wanted - taken:
            if is_free(pid) and take(pid):
                taken.add(pid)
    print(len(taken), harmed(), flush=True)
    for pid in taken:
        os.kill(pid, signal.SIGKILL)
