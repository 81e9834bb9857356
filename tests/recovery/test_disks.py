"""A full disk is named as what it is, whatever file system is on it, and no verb dies of it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adjourn.stores.sqlite.directory import is_local
from tests.contract.disks import fill, shell_on_small_disk
from tests.e2e.shell import Shell
from tests.needs import missing, needs

pytestmark = pytest.mark.one_machine("a database does not lie on the disk of the workspace")

MAKERS = {
    "ext4": (16, "mkfs.ext4", "-q", "-b", "4096"),
    "ext4 with blocks of 1 KB": (8, "mkfs.ext4", "-q", "-b", "1024"),
    "ext4 with blocks of 2 KB": (8, "mkfs.ext4", "-q", "-b", "2048"),
    "xfs": (300, "mkfs.xfs", "-q", "-f"),
    "btrfs": (120, "mkfs.btrfs", "-q", "-f"),
}


def _maker(name: str) -> str:
    """Return the path of what makes a file system; it need not be on a user's PATH."""
    return shutil.which(name, path="/usr/sbin:/sbin") or needs(name)


@contextmanager
def shell_on(kind: str, place: Path) -> Iterator[Shell]:
    """Have a shell on a disk of that kind."""
    if kind == "tmpfs":
        with shell_on_small_disk(place, kilobytes=2048) as shell:
            yield shell
        return
    megabytes, maker, *options = MAKERS[kind]
    image = place.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(int(megabytes) << 20)
    subprocess.run([_maker(str(maker)), *map(str, options), image], check=True, capture_output=True)
    place.mkdir()
    mounted = subprocess.run(
        [needs("mount"), "-o", "loop", image, place], capture_output=True, check=False
    )
    if mounted.returncode:
        missing("the right to mount a filesystem")
    try:
        place.chmod(0o700)
        shell = Shell(place)
        shell.environment |= {
            name: str(place.parent / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")
        }
        yield shell
        assert shell.end() == {}
    finally:
        subprocess.run([needs("umount"), "-l", place], check=True)


@pytest.mark.parametrize("kind", [*MAKERS, "tmpfs"])
def test_no_verb_on_a_full_disk_ends_without_naming_the_disk(kind: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        missing("the right to mount a filesystem")
    with shell_on(kind, tmp_path / "disk") as disk:
        manifest = disk.paused(disk.agent("approved.sh"))
        ask = manifest["asks"][0]["id"]
        filler = fill(disk.place)
        subprocess.run(["sync", "-f", disk.place], check=True)
        writing = (
            ("approve", ask),
            ("run", "--", "true"),
            ("run", "--pause-on-approval", "--", "true"),
        )
        looking = (("inbox",), ("tasks",), ("show", manifest["task_id"]))
        for words in (*looking, *writing, ("doctor",)):
            done = disk.adjourn(*words, expect=None)
            done.must(done.code)
            assert done.code == 0 or words == ("doctor",) or "the disk of " in done.err, (
                words,
                done,
            )
            assert done.code in ({1} if words in writing else {0, 1}), (words, done)
            if done.code and words != ("doctor",):
                assert f"the disk of {disk.store}" in done.err, (words, done.err)
                assert "is full" in done.err
                assert "try: df -h " in done.err
        filler.unlink()
        subprocess.run(["sync", "-f", disk.place], check=True)
        disk.line(manifest["resume_hint"])
        assert disk.lines("effects") == ["done with approved"]


LOCAL = {
    "ext4": "/dev/sda1",
    "xfs": "/dev/mapper/vg-home",
    "btrfs": "/dev/nvme0n1p2",
    "zfs": "tank/home",
    "tmpfs": "none",
    "overlay": "overlay",
    "fuseblk": "/dev/sdb1",
    "fuse.fuse-overlayfs": "fuse-overlayfs",
    "f2fs": "/dev/mmcblk0p1",
}
OF_OTHERS = {
    "nfs": "host:/export",
    "nfs4": "host:/export",
    "cifs": "//host/share",
    "smb3": "//host/share",
    "9p": "hostshare",
    "virtiofs": "hostshare",
    "vboxsf": "share",
    "prl_fs": "share",
    "fakeowner": "/run/host_mark/Users",
    "fuse.sshfs": "anna@host:/home",
    "fuse.glusterfs": "host:/volume",
    "fuse.s3fs": "bucket",
    "fuse.rclone": "remote:",
    "fuse.grpcfuse": "/dev/fuse",
    "fuse.something-new": "/dev/fuse",
    "fuse": "/dev/fuse",
    "glusterfs": "host:/volume",
    "gpfs": "/dev/gpfs0",
    "beegfs": "beegfs_nodev",
    "lustre": "host@tcp:/lustre",
    "ceph": "host:6789:/",
    "afs": "#root.cell",
    "ocfs2": "/dev/sdb1",
    "gfs2": "/dev/mapper/shared",
    "orangefs": "tcp://host:3334/orangefs",
    "a-kind-of-next-year": "host:/export",
    "fuse.encfs": "encfs",  # what it lies on cannot be seen
    "fuse.bindfs": "/a/directory/that/is/not/there",
}


@pytest.mark.parametrize("kind", LOCAL)
def test_a_file_system_of_this_machine_is_used(kind: str) -> None:
    assert is_local(kind, LOCAL[kind])


@pytest.mark.parametrize("kind", OF_OTHERS)
def test_a_file_system_that_others_may_see_is_not_used(kind: str) -> None:
    assert not is_local(kind, OF_OTHERS[kind])


@contextmanager
def _mounted_by_fuse(source: Path, *options: str) -> Iterator[Path]:
    """Mount a directory once more, by a program."""
    place = source.with_name(f"{source.name}-mounted")
    place.mkdir()
    bindfs = needs("bindfs")
    if subprocess.run(
        [bindfs, *options, source, place], capture_output=True, check=False
    ).returncode:
        missing("the right to mount by FUSE")
    try:
        yield place
    finally:
        subprocess.run([needs("umount"), "-l", place], check=True)
        place.rmdir()


def test_a_real_mount_by_a_program_is_not_used(shell: Shell) -> None:
    disk = shell.place / "disk"
    disk.mkdir()
    with _mounted_by_fuse(disk) as mounted:
        refused = shell.adjourn("run", "--store", str(mounted / "store"), "--", "true", expect=5)
        assert "(fuse), or on one that is not known to be local" in refused.err
    assert list(disk.iterdir()) == []


def test_a_mount_on_top_of_another_is_as_local_as_what_is_below(shell: Shell) -> None:
    """An encrypted directory of a network disk is seen by others, too."""
    disk = shell.place / "disk"
    disk.mkdir()
    encrypted = ("-o", "subtype=gocryptfs")
    with _mounted_by_fuse(disk, *encrypted) as mounted:
        shell.adjourn("run", "--store", str(mounted / "store"), "--", "true")
    shutil.rmtree(disk / "store")
    (disk / "below").mkdir()
    with (
        _mounted_by_fuse(disk) as unknown,
        _mounted_by_fuse(unknown / "below", *encrypted) as mounted,
    ):
        refused = shell.adjourn("run", "--store", str(mounted / "store"), "--", "true", expect=5)
        assert "(fuse.gocryptfs), or on one that is not known to be local" in refused.err
    assert list((disk / "below").iterdir()) == []
