"""A lock lasts exactly as long as the process that holds it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adjourn.system.files import hold_lock, is_lock_held
from tests.process.scene import eventually, fork, kill


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "a.lock")
    assert not is_lock_held(path), "a file that is missing is not held"
    lock = hold_lock(path)
    assert is_lock_held(path)
    lock.close()
    lock.close()
    assert not is_lock_held(path)
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    path = str(tmp_path / "a.lock")
    kept = []
    for _ in range(10):
        pid = fork(lambda: kept.append(hold_lock(path)))
        assert eventually(lambda: is_lock_held(path))
        kill(pid)
        assert not is_lock_held(path)


def test_a_lock_is_not_handed_down_to_a_program(tmp_path: Path) -> None:
    lock = hold_lock(str(tmp_path / "a.lock"))
    assert not os.get_inheritable(lock.fileno())
    lock.close()


def test_those_who_ask_never_take_one_another_for_the_holder(tmp_path: Path) -> None:
    path = str(tmp_path / "a.lock")
    hold_lock(path).close()
    with ThreadPoolExecutor(8) as crowd:
        assert not any(crowd.map(lambda _: is_lock_held(path), range(2000)))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        hold_lock(str(tmp_path / "a.lock"))
    assert not (tmp_path / "elsewhere").exists()
