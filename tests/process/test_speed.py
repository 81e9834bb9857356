"""What a shim costs, in units of starting the command without one.

And what nobody pays who runs none.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs

MEASURE = """
import os, sys, time
sys.path[:0] = sys.argv[1].split(":")
folder, rounds = sys.argv[2], int(sys.argv[3])
from adjourn.process.forks.client import ForkServer
from adjourn.process.shim import ShimSpec
server = ForkServer.start()
os.mkfifo(f"{folder}/here")
here = os.open(f"{folder}/here", os.O_RDWR)
argv = ("/bin/sh", "-c", f"echo > {folder}/here")

def bare():
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.execve(argv[0], argv, os.environ)
    os.read(here, 1)
    took = time.perf_counter() - began
    os.waitpid(pid, 0)
    return took

def gated(number):
    run_dir = f"{folder}/{number}"
    os.mkdir(run_dir)
    began = time.perf_counter()
    shim = server.fork_shim(ShimSpec(run_dir=run_dir, argv=argv, cwd="/", env=dict(os.environ)))
    ready = time.perf_counter()
    shim.open_gate()
    os.read(here, 1)
    ran = time.perf_counter()
    shim.wait(None)
    shim.close()
    return ran - began, ran - ready

bare(), gated("first")
plain, whole, gate = [], [], []
for number in range(rounds):
    plain.append(bare())
    for times, took in zip((whole, gate), gated(number)):
        times.append(took)
# Not the median: what others do on this machine is not the question.
print(*(min(times) * 1000 for times in (plain, whole, gate)))
"""


@pytest.mark.serial
def test_a_gated_start_costs_a_few_bare_ones() -> None:
    path = ":".join(entry for entry in sys.path if entry)
    folder = Path(
        subprocess.check_output([needs("mktemp"), "-d", "-p", "/dev/shm"], text=True).strip()
    )
    try:
        told = subprocess.check_output(
            [sys.executable, "-c", MEASURE, path, str(folder), "100"], text=True
        )
    finally:
        subprocess.run([needs("rm"), "-rf", folder], check=True)
    bare, whole, gate = map(float, told.split())
    print(
        f"bare start {bare:.2f} ms; through the gate {whole:.2f} ms, {whole / bare:.1f} times; from its opening on {gate:.2f} ms"
    )
    assert gate < 3 * bare
    assert whole < 10 * bare


LIGHT = """
import sys
sys.path[:0] = sys.argv[1].split(":")
import adjourn.process.identity, adjourn.system.files, adjourn.process.shim, adjourn.process.processes
heavy = {"ctypes", "subprocess", "socket", "resource", "threading", "selectors", "asyncio", "logging", "tempfile"}
print(sorted(heavy & set(sys.modules)))
"""


def test_who_only_looks_pays_for_no_machinery() -> None:
    path = ":".join(entry for entry in sys.path if entry)
    told = subprocess.check_output([sys.executable, "-S", "-c", LIGHT, path], text=True)
    assert told == "[]\n"
