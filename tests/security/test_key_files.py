"""A file that says who may decide, or whose a store is, that somebody else can have written (C-R13)."""

import os
from pathlib import Path

import pytest

from adjourn.core.errors import NotAllowed
from adjourn.system.files import read_secret
from adjourn.wiring.authority import FileSignatures
from tests.e2e.shell import Shell
from tests.needs import missing

KEY = "0123456789abcdef" * 4
STRANGER = 54_321  # a user and a group that nobody has


def spoiled(path: Path, how: str) -> Path:
    """Make a file one that somebody else could have written, or that blocks who reads it."""
    if how in {"another's", "of a group"} and os.geteuid() != 0:
        missing("the right to give a file away")
    match how:
        case "a FIFO":
            path.unlink()
            os.mkfifo(path)
        case "a directory":
            path.unlink()
            path.mkdir()
        case "another's":
            os.chown(path, STRANGER, STRANGER)
        case "of a group":
            os.chown(path, -1, STRANGER)
            path.chmod(0o660)
        case "everybody's":
            path.chmod(0o666)
        case _:
            path.chmod(0o666)
            path.rename(path.with_suffix(".real"))
            path.symlink_to(path.with_suffix(".real"))
    return path


WAYS = ["a FIFO", "a directory", "another's", "of a group", "everybody's", "behind a link"]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("how", WAYS)
def test_a_secret_that_somebody_else_can_have_written_is_not_read(key: Path, how: str) -> None:
    with pytest.raises(OSError, match=r"regular file|by others|directory"):
        read_secret(str(spoiled(key, how)), largest=1000)


def test_a_secret_is_read_from_a_file_a_link_and_a_pipe_of_the_caller(key: Path) -> None:
    key.with_name("link").symlink_to(key)
    reader, writer = os.pipe()
    os.write(writer, KEY.encode())
    os.close(writer)
    for path in (str(key), str(key.with_name("link")), f"/dev/fd/{reader}"):
        assert read_secret(path, largest=1000).decode() == KEY
    os.close(reader)
    key.chmod(0o640)
    assert read_secret(str(key), largest=10) == KEY[:10].encode()


@pytest.mark.one_machine("the key of a store is for stores of one machine")
@pytest.mark.parametrize("how", ["a FIFO", "of a group"])
def test_a_key_file_of_a_store_that_others_can_write_is_refused(
    shell: Shell, key: Path, how: str
) -> None:
    refused = shell.adjourn(
        "run", "--key-file", str(spoiled(key, how)), "--", "touch", "ran", expect=2
    )
    assert "the key cannot be read" in refused.err
    assert not (shell.place / "ran").exists()


@pytest.mark.parametrize("how", WAYS)
def test_signers_that_somebody_else_can_have_written_count_for_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Whoever could write that file could sign, and have every signed call run."""
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    config.mkdir(parents=True)
    signers = config / "allowed_signers"
    signers.write_text("anna ssh-ed25519 AAAA\n")
    signers.chmod(0o600)
    spoiled(signers, how)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config.parent))
    with pytest.raises(NotAllowed, match=r"written by others|no signature counts"):
        FileSignatures(str(shell.place)).signer(b"x", "y")
    if how == "a FIFO":
        assert "cannot be read" in shell.adjourn("doctor", expect=1).out
