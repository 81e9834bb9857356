"""Which ssh-keygen is asked: one of the system, never one that somebody put on PATH."""

import os
from pathlib import Path

import pytest

from adjourn.core.errors import AdjournError
from adjourn.signatures import find_program
from tests.needs import missing


def a_program(place: Path, *, mode: int = 0o755) -> Path:
    place.mkdir(mode=0o755, exist_ok=True)
    path = place / "ssh-keygen"
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_the_systems_own_comes_first(tmp_path: Path) -> None:
    system, other = a_program(tmp_path / "system"), a_program(tmp_path / "other")
    assert find_program([str(system.parent)], str(other.parent)) == str(system)


@pytest.mark.parametrize("path", ["", ".", "bin", "relative:.:../bin", "/nonexistent"])
def test_where_there_is_none_a_sentence_says_so(path: str) -> None:
    with pytest.raises(AdjournError, match="ssh-keygen is not installed") as told:
        find_program(["/nonexistent"], path)
    assert "openssh-client" in told.value.way_out


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o644])
def test_one_on_path_that_others_can_write_or_nobody_can_run_does_not_count(
    tmp_path: Path, mode: int
) -> None:
    with pytest.raises(AdjournError):
        find_program([], str(a_program(tmp_path / "bin", mode=mode).parent))


def test_one_on_path_counts_only_if_root_put_it_there(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        missing("the right to give files away")
    program = a_program(tmp_path / "bin")
    assert find_program([], str(program.parent)) == str(program)
    for path in (program, program.parent):
        os.chown(path, 65534, 65534)
        with pytest.raises(AdjournError):
            find_program([], str(program.parent))
        os.chown(path, 0, 0)
