"""The Codex program: where its binary is, how it is started, and which version it is."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from glob import escape, glob
from typing import Any

from adjourn.core.errors import AdjournError, CannotResume
from adjourn.runners.codex.options import CodexSetup
from adjourn.runners.installed import find_program

OLDEST = (0, 144)  # the first that goes on by an empty turn
_FEATURES = {
    # What is written to a terminal that a command holds open passes no gate
    "unified_exec_tty": False,
    "unbounded_connection_retries": False,
    "sleep_tool": False,
    "default_mode_request_user_input": True,
    # The calls of its sub-agents would be asked about in threads that nobody resumes
    "multi_agent": False,
}
_SYSTEM = "/etc/codex"
_PROVIDER = "openai"  # where no setting names one
_LAUNCHER = b"#!"
_THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def binary(setup: CodexSetup, environment: Mapping[str, str], *, workspace: str) -> str:
    """Return the program itself: a kill of npm's launcher would leave it running."""
    found = find_program(
        setup.program, path=environment.get("PATH", os.defpath), workspace=workspace
    )
    if found is None:
        raise AdjournError(
            f"the program {setup.program} is not there",
            way_out="npm install -g @openai/codex, or name it with --option program=PATH",
        )
    return next(_vendored(found), found) if _is_launcher(found) else found


def _is_launcher(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_LAUNCHER)) == _LAUNCHER and path_of_package(path) is not None


def path_of_package(launcher: str) -> str | None:
    """Return the directory of the npm package that a launcher belongs to."""
    directory = os.path.dirname(os.path.dirname(os.path.realpath(launcher)))
    return (
        directory
        if os.path.basename(directory) == "codex" and os.path.isfile(f"{directory}/package.json")
        else None
    )


def _vendored(launcher: str) -> Iterator[str]:
    package = path_of_package(launcher) or ""
    for pattern in (
        "-*/vendor/*/bin/codex",
        "/node_modules/@openai/codex-*/vendor/*/bin/codex",
        "/vendor/*/codex/codex",
    ):
        yield from glob(package + pattern)


def overrides(setup: CodexSetup, workspace: str) -> list[str]:
    """Return the settings that a run without a terminal needs, whatever the user's own say."""
    settings = [
        f"features.{name}={'true' if value else 'false'}" for name, value in _FEATURES.items()
    ]
    if not setup.trust_project:
        settings.append(f"projects={{{','.join(_untrusted(workspace))}}}")
    return [word for setting in settings for word in ("-c", setting)]


def _untrusted(workspace: str) -> Iterator[str]:
    """Yield the workspace and all that is above it, each as not trusted.

    A repository counts whose subdirectory it is.
    """
    yield f'{toml_text(workspace)}={{trust_level="untrusted"}}'
    if os.path.dirname(workspace) != workspace:
        yield from _untrusted(os.path.dirname(workspace))


def has_rules(setup: CodexSetup, workspace: str, environment: Mapping[str, str]) -> bool:
    """Say whether there are rules of Codex's own, which may let commands pass."""
    places = [
        _SYSTEM,
        home(environment),
        *([os.path.join(workspace, ".codex")] if setup.trust_project else []),
    ]
    return any(glob(f"{escape(place)}/rules/*.rules") for place in places)


def toml_text(text: str) -> str:
    """Write a text as TOML does."""
    escaped = "".join(
        f"\\u{ord(sign):04x}" if sign in '"\\' or ord(sign) < ord(" ") else sign for sign in text
    )
    return f'"{escaped}"'


def version_in(text: str) -> tuple[int, ...]:
    """Return the first version number in a text."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else ()


def refuse_too_old(version: tuple[int, ...]) -> None:
    """Refuse a Codex that cannot go on where it was stopped."""
    if version and version < OLDEST:
        shown = ".".join(map(str, version))
        raise AdjournError(
            f"Codex {shown} is too old: it cannot go on where it was stopped",
            way_out="npm install -g @openai/codex@latest",
        )


def require_thread(name: str) -> None:
    """Refuse anything that is not the name of one thread.

    Codex takes other words for a name, an option, or a new thread.
    """
    if not _THREAD.fullmatch(name):
        raise CannotResume(f"{name!r} is not the id of a Codex thread", way_out="adjourn restart")


def provider_of(setup: CodexSetup, place: str) -> str:
    """Return the provider of models that a new thread would get, by the user's settings."""
    try:
        with open(os.path.join(place, "config.toml"), "rb") as file:
            settings: dict[str, Any] = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        settings = {}
    profile = settings.get("profiles", {}).get(settings.get("profile", ""), {})
    named = profile.get("model_provider") or settings.get("model_provider") or _PROVIDER
    for word in setup.arguments:
        name, _, value = word.removeprefix("--config=").partition("=")
        named = value.strip().strip("\"'") if name.strip() == "model_provider" else named
    return str(named)


def home(environment: Mapping[str, str]) -> str:
    """Return where Codex keeps its sessions and settings."""
    return environment.get("CODEX_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".codex"
    )
