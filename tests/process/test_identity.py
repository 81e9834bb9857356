"""A process is named by boot, pid and start time, never by its pid alone."""

import ctypes
import os
import signal
import sys
import threading
import time

import msgspec

from adjourn.process.identity import identify, is_alive
from adjourn.system.machine import boot_id
from tests.process.scene import eventually, fork, kill


def test_a_living_process_has_a_name_that_stays() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me == identify(os.getpid())
    assert me.boot_id == boot_id()
    assert is_alive(me)


def test_the_same_pid_with_another_start_or_boot_is_another_process() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert not is_alive(msgspec.structs.replace(me, start_time=me.start_time - 1))
    assert not is_alive(msgspec.structs.replace(me, boot_id="00000000-0000-0000-0000-000000000000"))


def test_a_zombie_is_dead_and_a_missing_pid_too() -> None:
    pid = fork(lambda: None)
    name = identify(pid)
    assert name is not None
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not is_alive(name)), "a zombie counts as alive"
    os.waitpid(pid, 0)
    assert identify(pid) is None


def test_a_process_that_lost_its_first_thread_is_alive() -> None:
    def lose_first_thread() -> None:
        threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
        ctypes.CDLL(None).syscall(60 if sys.platform == "linux" else 1, 0)

    pid = fork(lose_first_thread)
    name = identify(pid)
    assert name is not None
    time.sleep(0.2)
    assert is_alive(name)
    kill(pid)
    assert not is_alive(name)


def test_any_name_of_the_program_is_understood() -> None:
    def take_an_odd_name() -> None:
        with open("/proc/self/comm", "w", encoding="utf-8") as comm:
            comm.write(") Z 1 (x) \n")

    pid = fork(take_an_odd_name)
    name = identify(pid)
    time.sleep(0.05)
    assert name is not None
    assert identify(pid) == name
    kill(pid)
