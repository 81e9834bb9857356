"""What a command depends on, as it is on disk now."""

import mmap
import os
import time
from pathlib import Path

from adjourn.core.call import Command
from adjourn.workspace import command_files
from adjourn.workspace.command_files import look_at

OLD = time.time() - 3_600


def digests(place: Path, *argv: str) -> dict[str, str]:
    return look_at(Command(argv=argv, cwd=str(place)), path="/usr/bin:/bin").files


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    """Only the kernel sets the time of the last change.

    The one that a program can set proves nothing.
    """
    plan = tmp_path / "plan"
    plan.write_text("good")
    os.utime(plan, (OLD, OLD))
    command_files._known.clear()
    time.sleep(2.1)
    first = digests(tmp_path, "cat", "plan")
    assert digests(tmp_path, "cat", "plan") == first
    plan.write_text("evil")
    os.utime(plan, (OLD, OLD))
    assert digests(tmp_path, "cat", "plan")[str(plan)] != first[str(plan)]


def test_changes_in_quick_succession_are_all_seen(tmp_path: Path) -> None:
    """Within the grain of the clock two changes look alike.

    What was changed just now is read again.
    """
    plan = tmp_path / "plan"
    seen: set[str] = set()
    for number in range(300):
        plan.write_text(f"{number:04}")
        seen.add(digests(tmp_path, "cat", "plan")[str(plan)])
    assert len(seen) == 300


def test_a_change_through_a_mapping_is_seen(tmp_path: Path) -> None:
    """It leaves all times of the file as they were.

    Of what this user can write, no digest is kept.
    """
    plan = tmp_path / "plan"
    plan.write_text("good")
    with plan.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = b"fine"
        time.sleep(2.1)
        first = digests(tmp_path, "cat", "plan")
        assert digests(tmp_path, "cat", "plan") == first
        mapped[:] = b"evil"
        assert digests(tmp_path, "cat", "plan")[str(plan)] != first[str(plan)]


def test_only_what_root_alone_can_change_is_read_once(tmp_path: Path) -> None:
    command_files._known.clear()
    digests(tmp_path, "/bin/sh")
    assert len(command_files._known) == (1 if os.getuid() else 0)


def test_another_file_in_its_place_is_seen(tmp_path: Path) -> None:
    plan, other = tmp_path / "plan", tmp_path / "other"
    plan.write_text("good")
    other.write_text("evil")
    first = digests(tmp_path, "cat", "plan")
    other.rename(plan)
    assert digests(tmp_path, "cat", "plan")[str(plan)] != first[str(plan)]
