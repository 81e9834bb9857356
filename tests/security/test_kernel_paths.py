"""A path means what the kernel makes of it, nowhere something else."""

from tests.e2e.shell import ADJOURN, Shell


def _project(shell: Shell) -> None:
    """Have `link` lead elsewhere, so that `link/..` is not where it stands."""
    (shell.place / "far" / "inner").mkdir(parents=True)
    (shell.place / "link").symlink_to(shell.place / "far" / "inner")
    for folder, word in ((shell.place, "shown"), (shell.place / "far", "run")):
        (folder / "apply.sh").write_text(f"#!/bin/sh\necho {word}\n")
        (folder / "apply.sh").chmod(0o755)


def test_a_path_behind_a_link_does_not_show_another_file(shell: Shell) -> None:
    _project(shell)
    for argv in (
        ["./link/../apply.sh"],
        ["sh", "./link/../apply.sh"],
        ["cat", "--", "link/../apply.sh"],
    ):
        paused = shell.json("run", "--pause-on-approval", "--", *argv, expect=10)
        shown = shell.adjourn("show", paused["task_id"], "--full").out
        assert f"file {shell.place}/far/apply.sh sha256:" in shown
        assert f"file {shell.place}/apply.sh" not in shown


def test_a_change_behind_a_link_is_not_overlooked(shell: Shell) -> None:
    _project(shell)
    paused = shell.json("run", "--pause-on-approval", "--", "./link/../apply.sh", expect=10)
    (shell.place / "far" / "apply.sh").write_text("#!/bin/sh\necho evil\n")
    shell.adjourn("approve", paused["asks"][0]["id"])
    again = shell.json("resume", paused["task_id"], expect=10)
    assert "far/apply.sh was sha256:" in again["asks"][-1]["prompt"]


def test_a_program_behind_a_link_is_not_taken_for_another_by_the_policy(shell: Shell) -> None:
    """A rule that refuses one program must not be passed by a path that only seems to lead elsewhere."""
    _project(shell)
    (shell.place / "tools").mkdir()
    (shell.place / "tools" / "apply.sh").symlink_to("../far/apply.sh")
    config = shell.place / ".config" / "adjourn"
    config.mkdir(parents=True, mode=0o700)
    rule = f'[[rule]]\ntool = "command"\nargs = ["{shell.place}/far/apply.sh", "**"]\naction = "never"\n'
    (config / "policy.toml").write_text(rule)
    for path in ("./link/../apply.sh", "tools/apply.sh"):
        explained = shell.run(
            str(ADJOURN), "policy", "explain", "--output", "json", "--", path, expect=None
        ).doc
        assert explained["action"] == "never", path


def test_a_path_that_each_process_reads_otherwise_is_not_shown_as_covered(shell: Shell) -> None:
    """The digest would be of a file in the directory of whoever looks, and not of the command."""
    _project(shell)
    (shell.place / "hidden").symlink_to("/proc/self/cwd/apply.sh")
    for word in ("/proc/self/cwd/apply.sh", "/proc/thread-self/cwd/apply.sh", "./hidden"):
        paused = shell.json("run", "--pause-on-approval", "--", "cat", word, expect=10)
        shown = shell.adjourn("show", paused["task_id"], "--full").out
        assert "not covered: another file for each process" in shown
