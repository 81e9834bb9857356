"""`store forget` removes what the user's state directory keeps of deleted stores, and of no others."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.disks import small_disk
from tests.e2e.shell import Document, Shell
from tests.needs import needs

pytestmark = pytest.mark.one_machine("a shared store keeps no secret on the machine")


def _entries(shell: Shell) -> set[str]:
    return {
        path.name for path in Path(shell.environment["XDG_STATE_HOME"]).glob("adjourn/stores/*")
    }


def _doctor(shell: Shell) -> list[str]:
    findings: list[Document] = shell.adjourn("doctor", "--output", "json", expect=None).doc[
        "findings"
    ]
    return [finding["says"] for finding in findings if finding["check"] == "deleted"]


def _make_store(shell: Shell, place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    shell.adjourn("run", "--store", str(place / ".adjourn"), "--", "true")
    return place / ".adjourn"


def test_what_is_kept_of_deleted_stores_goes_after_a_yes(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    mine = _entries(shell)
    assert _doctor(shell) == []
    shutil.rmtree(_make_store(shell, shell.place / "one"))
    _make_store(shell, shell.place / "below" / "two")
    shutil.rmtree(shell.place / "below")  # the whole project
    replaced = _make_store(shell, shell.place / "three")
    replaced.rename(shell.place / "three" / "old")
    _make_store(shell, shell.place / "three")
    shutil.rmtree(shell.place / "three" / "old")
    assert len(_entries(shell)) == 5
    (says,) = _doctor(shell)
    assert "3 stores" in says
    assert "adjourn store forget" in says
    asked = shell.adjourn("store", "forget", expect=2)
    for name in ("one/.adjourn", "below/two/.adjourn", "three/.adjourn"):
        assert str(shell.place / name) in asked.out
    assert len(_entries(shell)) == 5
    told = shell.line(asked.err.partition("try: ")[2])
    assert "Forgot 3 stores" in told.out
    assert mine < _entries(shell)
    assert len(_entries(shell)) == 2
    assert _doctor(shell) == []
    shell.adjourn("run", "--", "true")
    shell.adjourn("run", "--store", str(shell.place / "three" / ".adjourn"), "--", "true")
    assert "Nothing to forget" in shell.adjourn("store", "forget", "--yes").out


def test_a_store_on_a_disk_that_is_not_mounted_keeps_its_secret(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    elsewhere = shell.place / "elsewhere"
    elsewhere.mkdir()
    with small_disk(shell.place / "disk", kilobytes=4096) as disk:
        store = _make_store(shell, disk / "project")
        entries = _entries(shell)
        subprocess.run([needs("mount"), "--bind", disk, elsewhere], check=True)
        subprocess.run([needs("umount"), disk], check=True)
        try:
            assert not store.exists()
            assert "Nothing to forget" in shell.adjourn("store", "forget", "--yes").out
            refused = shell.adjourn("store", "forget", str(store), "--yes", expect=4)
            assert "may not be mounted" in refused.err
            assert _entries(shell) == entries
            assert _doctor(shell) == []
        finally:
            subprocess.run([needs("mount"), "--bind", elsewhere, disk], check=True)
            subprocess.run([needs("umount"), elsewhere], check=True)
        shell.adjourn("run", "--store", str(store), "--", "true")


def test_a_store_that_was_moved_is_no_longer_listed_once_it_was_used_there(shell: Shell) -> None:
    store = _make_store(shell, shell.place / "old")
    shell.adjourn("run", "--", "true")
    os.rename(store.parent, shell.place / "new")
    asked = shell.adjourn("store", "forget", expect=2)
    assert str(store) in asked.out
    assert "moved" in asked.out
    shell.adjourn("doctor", "--store", str(shell.place / "new" / ".adjourn"), expect=None)
    assert "Nothing to forget" in shell.adjourn("store", "forget", "--yes").out
    shell.adjourn("run", "--store", str(shell.place / "new" / ".adjourn"), "--", "true")


def test_a_store_that_is_there_or_unknown_is_not_forgotten(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    entries = _entries(shell)
    assert "is there" in shell.adjourn("store", "forget", str(shell.store), "--yes", expect=4).err
    assert "nothing is kept" in shell.adjourn("store", "forget", "unknown", "--yes", expect=3).err
    assert _entries(shell) == entries
    shell.adjourn("run", "--", "sh", "-c", "adjourn store forget --yes; echo $? > code")
    assert shell.lines("code") == ["5"]
