"""The project's own programs are the project's.

No rule for a bare name lets them run without a person.
"""

import os
from pathlib import Path

from tests.e2e.shell import ADJOURN, Shell


def _policy(shell: Shell, text: str) -> None:
    config = shell.place / ".config" / "adjourn"
    config.mkdir(parents=True, mode=0o700, exist_ok=True)
    (config / "policy.toml").write_text(text)


def _auto(*names: str, dirs: str = "**") -> str:
    return "".join(
        f'[[rule]]\nargs = ["{name}", "**"]\naction = "auto"\ndirs = ["{dirs}"]\n' for name in names
    )


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _judged(shell: Shell, *argv: str, path: Path | str, cwd: Path, directory: str = "") -> str:
    """Return what the policy says of a command there, with a directory in front of PATH, and why."""
    env = {"PATH": f"{path}{os.pathsep}{shell.environment['PATH']}"}
    words = [
        "policy",
        "explain",
        "--output",
        "json",
        *(["--cwd", directory] if directory else []),
        "--",
        *argv,
    ]
    done = shell.run(str(ADJOURN), *words, expect=None, env=env, cwd=cwd)
    return f"{done.doc['action']}: {'; '.join(done.doc['why'])}"


def _repository(shell: Shell) -> Path:
    repository = shell.place / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "deep" / "down").mkdir(parents=True)
    _program(repository / "bin" / "ls", "#!/bin/sh\necho evil\n")
    return repository


def test_the_repositorys_ls_does_not_run_by_itself_from_a_subdirectory(shell: Shell) -> None:
    repository = _repository(shell)
    _policy(shell, _auto("ls"))
    strange = f"prompt: ls is {repository}/bin/ls, inside the workspace"
    for place in (repository, repository / "deep", repository / "deep" / "down"):
        assert _judged(shell, "ls", path=repository / "bin", cwd=place) == strange
    # A submodule is the repository's, too
    (repository / "deep" / ".git").write_text("gitdir: ../.git/modules/deep\n")
    assert _judged(shell, "ls", path=repository / "bin", cwd=repository / "deep") == strange
    assert _judged(shell, "ls", path=shell.place / "nowhere", cwd=repository).startswith("auto")


def test_the_projects_ls_does_not_run_by_itself_wherever_the_call_runs(shell: Shell) -> None:
    """The project is that of the task's workspace, also where that is no repository.

    `/` holds everything and is none.
    """
    workspace, elsewhere = shell.place / "workspace", shell.place / "elsewhere"
    for place in (workspace / "deep", elsewhere):
        place.mkdir(parents=True)
    _program(workspace / "bin" / "ls", "#!/bin/sh\necho evil\n")
    _policy(shell, _auto("ls", dirs="/**"))
    strange = f"prompt: ls is {workspace}/bin/ls, inside the workspace"
    for directory in ("deep", str(elsewhere), "/"):
        assert (
            _judged(shell, "ls", path=workspace / "bin", cwd=workspace, directory=directory)
            == strange
        )
        assert _judged(
            shell, "ls", path=shell.place / "nowhere", cwd=workspace, directory=directory
        ).startswith("auto")


def test_a_relative_entry_of_path_lets_nothing_run_by_itself_elsewhere(shell: Shell) -> None:
    workspace, elsewhere, tools = (
        shell.place / "workspace",
        shell.place / "elsewhere",
        shell.place / "tools",
    )
    workspace.mkdir()
    for name in ("ls", "node"):
        _program(elsewhere / "bin" / name, "#!/bin/sh\necho evil\n")
    _program(tools / "prettier", "#!/usr/bin/env node\n")
    _policy(shell, _auto("ls", "prettier", dirs="/**"))
    found = _judged(shell, "ls", path="bin", cwd=workspace, directory=str(elsewhere))
    assert (
        found
        == f"prompt: ls is {elsewhere}/bin/ls, by a path from the directory that it would run in"
    )
    found = _judged(
        shell, "prettier", path=f"{tools}{os.pathsep}bin", cwd=workspace, directory=str(elsewhere)
    )
    assert (
        found
        == "prompt: prettier is a script, and PATH finds bin/node in the directory that it would run in"
    )


def test_the_repositorys_node_does_not_run_by_itself_behind_env(shell: Shell) -> None:
    """The script is the system's, the interpreter that env finds is not."""
    repository = _repository(shell)
    tools = shell.place / "tools"
    _program(tools / "prettier", "#!/usr/bin/env node\n")
    _program(tools / "lint", "#!/usr/bin/env -S node --flag\n")
    _program(tools / "strange", "#!/usr/bin/env -u HOME node\n")
    _program(tools / "nested", f"#!{tools}/prettier\n")
    _program(repository / "bin" / "node", "#!/bin/sh\necho evil\n")
    wrappers = {
        "polite": "#!/usr/bin/nice node",
        "brief": "#!/usr/bin/timeout 5 node",
        "both": "#!/usr/bin/env -S nice node",
        "linked": f"#!{tools}/link",
    }
    for name, line in wrappers.items():
        _program(tools / name, f"{line}\n")
    (tools / "link").symlink_to("/usr/bin/nice")
    words = ("prettier", "lint", "nested", f"{tools}/prettier")
    _policy(shell, _auto(*words, *wrappers, "strange"))
    both = f"{tools}{os.pathsep}{repository}/bin"
    for word in words:
        strange = f"prompt: {word} is a script for {repository}/bin/node, inside the workspace"
        assert _judged(shell, word, path=both, cwd=repository / "deep") == strange
    for word in ("strange", *wrappers):
        assert _judged(shell, word, path=both, cwd=repository).startswith(
            f"prompt: {word} is a script, and what `"
        )
    _program(tools / "node", "#!/bin/sh\necho fine\n")
    assert _judged(shell, "prettier", path=both, cwd=repository).startswith("auto")


def test_an_interpreter_that_a_script_names_in_the_repository_does_not_run_by_itself(
    shell: Shell,
) -> None:
    repository = _repository(shell)
    tools = shell.place / "tools"
    _program(tools / "format", f"#!{repository}/bin/ls\n")
    _program(tools / "relative", "#!bin/ls\n")
    _policy(shell, _auto("format", "relative"))
    assert "inside the workspace" in _judged(shell, "format", path=tools, cwd=repository / "deep")
    assert "inside the workspace" in _judged(shell, "relative", path=tools, cwd=repository)


def test_our_directory_on_path_shadows_no_program(shell: Shell) -> None:
    """A run finds this very adjourn, and of what is installed beside it nothing that PATH would not have found."""
    env = {"PATH": "/usr/bin:/bin"}
    line = 'command -v adjourn; ls -A "${PATH%%:*}"; command -v ruff || echo none'
    own, *rest = shell.adjourn("run", "--", "/bin/sh", "-c", line, env=env).out.splitlines()
    assert os.path.realpath(own) == os.path.realpath(ADJOURN)
    assert rest == ["adjourn", "none"]


def test_a_program_that_was_put_beside_our_own_is_never_found(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    _program(shell.store / "bin" / "ls", "#!/bin/sh\necho evil > evil\n")
    (shell.store / "bin" / "adjourn").unlink()
    _program(shell.store / "bin" / "adjourn", "#!/bin/sh\necho evil > evil\n")
    shell.adjourn("run", "--", "/bin/sh", "-c", "ls; adjourn --version")
    assert not (shell.place / "evil").exists()


def test_the_workspaces_adjourn_is_never_taken_for_ours(shell: Shell) -> None:
    _program(shell.place / "adjourn", "#!/bin/sh\necho evil > evil\n")
    env = {"PATH": f"{shell.place}{os.pathsep}{shell.environment['PATH']}"}
    shell.adjourn("run", "--", "/bin/sh", "-c", "adjourn --version", env=env)
    shell.adjourn("run", "--", "adjourn", "--version", env=env)
    assert not (shell.place / "evil").exists()
