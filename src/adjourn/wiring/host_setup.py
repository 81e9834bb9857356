"""Makes `adjourn mcp` known to a host, by the host's own commands, with a secret of its own."""

import difflib
import os
import re
import subprocess
from collections.abc import Callable, Sequence

import msgspec

from adjourn.core.errors import AdjournError, Misuse, NotFound
from adjourn.core.text.when import stamp
from adjourn.runners.installed import find_program
from adjourn.settings.agent_hosts import AgentHost, change_hosts, digest_of_secret
from adjourn.system.files import write_whole
from adjourn.system.machine import AGENT_SECRET, now
from adjourn.wiring.own_program import own_program

_SERVER = "adjourn"
_SECONDS = 60
_MILLISECONDS = 300_000  # that Claude Code gives one call of a tool
_PLACES = ("ADJOURN_STORE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")  # where the server finds its files
_CODEX_KEYS = {
    "required": "true",  # Codex asks its model without the tools of a server that is not up yet
    "tool_timeout_sec": "300",
    "default_tools_approval_mode": '"auto"',
}


class HostKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of host: its program, where it keeps its servers, and its commands."""

    name: str
    program: str  # the variable that names it, where it is not on PATH
    config: Callable[[], str]
    add: Callable[[Sequence[str], str, bool], list[str]]
    remove: Callable[[bool], list[str]]
    has_project_scope: bool
    finish: Callable[[str], None] = lambda _: None


def _claude_config() -> str:
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~")
    return os.path.join(folder, ".claude.json")


def _claude_add(argv: Sequence[str], secret: str, is_project: bool) -> list[str]:  # noqa: FBT001 -- a table calls it
    server = {
        "type": "stdio",
        "command": argv[0],
        "args": list(argv[1:]),
        "env": _environment(secret),
        "timeout": _MILLISECONDS,
        "alwaysLoad": True,
    }
    # `local` is this project's, and private: `project` would write the secret into the repository
    scope = "local" if is_project else "user"
    return ["mcp", "add-json", "-s", scope, _SERVER, msgspec.json.encode(server).decode()]


def _claude_remove(is_project: bool) -> list[str]:  # noqa: FBT001 -- a table calls it
    return ["mcp", "remove", "-s", "local" if is_project else "user", _SERVER]


def _codex_config() -> str:
    folder = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    return os.path.join(folder, "config.toml")


def _codex_add(argv: Sequence[str], secret: str, is_project: bool) -> list[str]:  # noqa: FBT001 -- a table calls it
    del is_project
    given = [word for pair in _environment(secret).items() for word in ("--env", "=".join(pair))]
    return ["mcp", "add", _SERVER, *given, "--", *argv]


def _environment(secret: str) -> dict[str, str]:
    """Return what a host gives the server; Codex hands on nothing else that we need."""
    places = {name: os.environ[name] for name in _PLACES if name in os.environ}
    return {AGENT_SECRET: secret, **places}


def _codex_finish(path: str) -> None:
    """Add the keys that `codex mcp add` has no flags for."""
    text = _read(path)
    head = f"[mcp_servers.{_SERVER}]\n"
    if head not in text:
        raise AdjournError(f"{path} has no {head.strip()}", way_out="codex mcp list")
    lines = "".join(f"{key} = {value}\n" for key, value in _CODEX_KEYS.items())
    write_whole(path, text.replace(head, head + lines, 1).encode())


HOSTS = {
    "claude": HostKind(
        name="claude",
        program="ADJOURN_CLAUDE",
        config=_claude_config,
        add=_claude_add,
        remove=_claude_remove,
        has_project_scope=True,
    ),
    "codex": HostKind(
        name="codex",
        program="ADJOURN_CODEX",
        config=_codex_config,
        add=_codex_add,
        remove=lambda _: ["mcp", "remove", _SERVER],
        has_project_scope=False,
        finish=_codex_finish,
    ),
}


class HostChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a setup changed, and what the host says of it."""

    host: str
    config: str
    difference: str  # without the secret
    check: str


def set_up(kind_name: str, *, is_project: bool) -> HostChange:
    """Make adjourn known to a host, with a new secret of which only the hash is kept here."""
    kind = _kind(kind_name, is_project=is_project)
    program, before = _find(kind), _read(kind.config())
    secret = os.urandom(32).hex()
    argv = [own_program() or _SERVER, "mcp", "--as", kind.name]
    if _has_server(before):
        _run(kind, program, kind.remove(is_project), may_fail=True)
    host = AgentHost(
        name=kind.name,
        kind=kind.name,
        secret_sha256=digest_of_secret(secret),
        at=stamp(now()),
    )
    change_hosts(lambda hosts: (*(each for each in hosts if each.name != host.name), host))
    _run(kind, program, kind.add(argv, secret, is_project))
    kind.finish(kind.config())
    check = _run(kind, program, ["mcp", "get", _SERVER])
    return _change(kind, before, check=check, secret=secret)


def take_back(kind_name: str, *, is_project: bool) -> HostChange:
    """Have a host forget adjourn. Its secret is worth nothing from then on."""
    kind = _kind(kind_name, is_project=is_project)
    program, before = _find(kind), _read(kind.config())
    _run(kind, program, kind.remove(is_project), may_fail=not _has_server(before))
    change_hosts(lambda hosts: tuple(each for each in hosts if each.name != kind.name))
    return _change(kind, before, check="removed", secret=None)


def _kind(name: str, *, is_project: bool) -> HostKind:
    kind = HOSTS[name]
    if is_project and not kind.has_project_scope:
        raise Misuse(
            f"{name} keeps its MCP servers for the user, not for a project",
            way_out=f"adjourn setup {name}",
        )
    return kind


def _find(kind: HostKind) -> str:
    named = os.environ.get(kind.program) or kind.name
    found = find_program(named, path=os.environ.get("PATH", ""), workspace=os.getcwd())
    if found is None:
        raise NotFound(f"{kind.name} is not installed", way_out=f"set {kind.program} to its path")
    return found


def _run(kind: HostKind, program: str, words: list[str], *, may_fail: bool = False) -> str:
    shown = " ".join([kind.name, *words[:2]])
    try:
        done = subprocess.run(
            [program, *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdjournError(f"`{shown}` did not work: {error}", way_out=f"{shown} --help") from None
    if done.returncode and not may_fail:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-500:]
        raise AdjournError(f"`{shown}` failed: {_masked(said)}", way_out=f"{shown} --help")
    return _masked(done.stdout.decode(errors="replace"))


def _change(kind: HostKind, before: str, *, check: str, secret: str | None) -> HostChange:
    after = _read(kind.config())
    if secret:
        after = after.replace(secret, "…")
    rows = difflib.unified_diff(
        _masked(before).splitlines(),
        _masked(after).splitlines(),
        "before",
        "after",
        n=1,
        lineterm="",
    )
    return HostChange(
        host=kind.name, config=kind.config(), difference="\n".join(rows), check=check.strip()
    )


def _masked(text: str) -> str:
    """Return a text without the secret of a host, earlier ones included."""
    return re.sub(rf"({AGENT_SECRET}\W+)[0-9a-f]{{64}}", r"\1…", text)


def _has_server(config: str) -> bool:
    return AGENT_SECRET in config


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
