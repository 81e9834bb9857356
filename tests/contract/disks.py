"""Small disks of a test's own: full, read-only, or both."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.shell import Shell
from tests.needs import missing, needs


@contextmanager
def small_disk(place: Path, *, kilobytes: int) -> Iterator[Path]:
    """Mount a filesystem of that size for a while."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k,mode=0700", "tmpfs"]
    if subprocess.run(
        [needs("mount"), *options, place], capture_output=True, check=False
    ).returncode:
        missing("the right to mount a filesystem")
    try:
        yield place
    finally:
        subprocess.run([needs("umount"), "-l", place], check=True)


@contextmanager
def shell_on_small_disk(place: Path, *, kilobytes: int) -> Iterator[Shell]:
    """Have a shell on a disk of its own; afterwards no process of it may be left."""
    if os.geteuid() != 0:
        missing("the right to mount a filesystem")
    with small_disk(place, kilobytes=kilobytes) as disk:
        shell = Shell(disk)
        yield shell
        assert shell.end() == {}


def make_read_only(disk: Path) -> None:
    subprocess.run([needs("mount"), "-o", "remount,ro", disk], check=True)


def fill(disk: Path, *, but: int = 0) -> Path:
    """Fill a disk up to the last byte, or leave so many bytes."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            _write_while_there_is_room(file.fileno(), size)
        file.truncate(max(0, file.seek(0, os.SEEK_END) - but))
    return filler


def _write_while_there_is_room(fd: int, size: int) -> None:
    try:
        while os.write(fd, b"x" * size):
            pass
    except OSError:
        return
