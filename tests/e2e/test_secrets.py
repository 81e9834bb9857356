"""A secret that a command carries is in the store, and in nothing that leaves it."""

import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.shell import ADJOURN, Done, Shell, until
from tests.mcp_server.host import Host
from tests.secrets import OWN_PATTERN, Canary, canaries, is_store

CANARIES = canaries()
GROUPS = [CANARIES]
OWN = "acme-00112233445566778899"


def configure(shell: Shell, redact: str = f'redact = ["{OWN_PATTERN}"]') -> Path:
    """Have a notifier write what it is told into a file, and say what else is a secret."""
    path = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = shell.script(
        f"cat >> '{shell.place}/told'; echo >> '{shell.place}/told'", name="notify.sh"
    )
    path.write_text(f'{redact}\n[[notify]]\ncommand = ["{shell.place}/{told}"]\n')
    return path


def words_of(group: list[Canary]) -> list[str]:
    return [word for canary in group for word in canary.words] + [OWN]


def copies(shell: Shell) -> dict[str, bytes]:
    """Return every file outside of the store, but for the agent's own and the config."""
    files = [
        path
        for path in shell.place.rglob("*")
        if path.is_file() and not is_store(path, shell.store)
    ]
    return {
        str(path.relative_to(shell.place)): path.read_bytes()
        for path in files
        if path.suffix not in {".toml", ".py"}
    }


def leaks(group: list[Canary], outputs: dict[str, bytes]) -> list[str]:
    cores = {canary.name: canary.core for canary in group} | {"the user's own": OWN}
    return [
        f"{name} in {where}"
        for where, text in outputs.items()
        for name, core in cores.items()
        if core.encode() in text
    ]


def said(*done: Done) -> dict[str, bytes]:
    return {f"{each.words[:3]}": each.raw + each.raw_err for each in done}


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_secrets_stay_in_the_store(shell: Shell, number: int) -> None:
    """A-R86: 50 canaries through argv, environment, output, manifest, log, traceback and notification."""
    group = GROUPS[number]
    configure(shell)
    (shell.place / "tmp").mkdir()
    known = {
        f"CANARY_{at}": " ".join(canary.words)
        for at, canary in enumerate(group)
        if canary.words[0] != "-u"
    }
    shell.environment |= {"TMPDIR": str(shell.place / "tmp"), **known}
    agent = [sys.executable, shell.agent("leaky.py"), *words_of(group)]
    paused = shell.adjourn("run", "--output", "json", "--", *agent, expect=10)
    assert leaks(
        group,
        {"the store": b"".join(bytes(body) for (body,) in shell.sql("SELECT body FROM call_body"))},
    )
    task, ask = paused.doc["task_id"], paused.doc["asks"][0]["id"]
    done = [
        paused,
        shell.adjourn("inbox", "--output", "json"),
        shell.adjourn("tasks", "--output", "json"),
        shell.adjourn("show", task, "--output", "json"),
        shell.adjourn("run", *words_of(group), expect=2),
        shell.adjourn("approve", ask, "--output", "json"),
        shell.adjourn("worker", "--once", "--log-format", "json", "--verbose"),
        shell.adjourn("show", task, "--output", "json"),
        shell.adjourn("runs", task, "--output", "json"),
        shell.adjourn("notify", "--flush", "--output", "json"),
    ]
    assert (shell.place / "told").stat().st_size > 0
    assert leaks(group, said(*done) | copies(shell)) == []
    assert b"redacted" in (shell.store / "session" / "pause.json").read_bytes()


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_what_a_job_logs_of_a_pause_has_no_secrets(shell: Shell, number: int) -> None:
    """Where no person looks, what is printed is a copy too; where one looks, all is shown."""
    group = GROUPS[number]
    configure(shell)
    asks = shell.adjourn("run", "--", "sh", "-c", "exit 90", "sh", *words_of(group), expect=10)
    assert leaks(group, said(asks)) == []
    shown = shell.adjourn("show", asks.out.split("(task ")[1].split(")")[0], "--full")
    assert set(leaks(group, said(shown))) >= {
        f"{canary.name} in {shown.words[:3]}" for canary in group
    }


@pytest.mark.one_machine("it sees by files who watches")
def test_a_parent_agent_and_who_watches_see_no_secrets(shell: Shell) -> None:
    """Every tool of the MCP server that shows something, its resources, and `watch`."""
    configure(shell)
    words = ["sh", "-c", 'echo "$@"; adjourn ask "$*" --key k; exit 90', "sh", *words_of(CANARIES)]
    shell.adjourn("run", "--", "true")  # makes the store
    watching = [shell.start("watch"), shell.start("watch", "--output", "json")]
    until(lambda: len(list((shell.store / "wake").iterdir())) == 2, what="both listen")
    with Host(shell) as host:
        host.initialize()
        begun = host.call("run_command_task", command=words)
        waited = host.wait(begun["task_id"])
        shown: dict[str, Any] = {
            "run_command_task": begun,
            "wait_for_tasks": waited,
            "get_task_details": host.call("get_task_details", task_id=begun["task_id"]),
            "list_tasks": host.call("list_tasks"),
            "list_asks": host.call("list_asks"),
            "a refusal": host.refused("get_task_details", task_id=" ".join(words)),
        }
        uris = [each["uri"] for each in host.ask("resources/list")["resources"]]
        task = f"adjourn://tasks/{begun['task_id']}"
        run = f"adjourn://runs/{begun['task_id']}.1"
        uris += [task, f"{task}/transcript", f"{run}/stdout", f"{run}/stderr"]
        shown |= {uri: host.reply(host.begin("resources/read", {"uri": uri})) for uri in uris}
    texts = {name: msgspec.json.encode(document) for name, document in shown.items()}
    for process in watching:
        assert process.stdout is not None
        line = process.stdout.readline()  # it has begun to tell
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        texts[repr(process.args)] = line + out + err
    assert leaks(CANARIES, texts) == []
    assert b"redacted" in texts["get_task_details"]


def test_a_question_is_copied_without_its_secrets(shell: Shell) -> None:
    """Neither the manifest nor the request of a clarification tells what it holds, and the answer arrives whole."""
    configure(shell)
    script = 'import adjourn; a = adjourn.clarify(["Is --password hunter2hunter2 right?"], linger=0); open("got", "w").write(a["Q1"])'
    paused = shell.adjourn(
        "run", "--output", "json", "--verbose", "--", sys.executable, "-c", script, expect=10
    )
    outside = {where: text for where, text in copies(shell).items() if "checkpoints" not in where}
    assert "hunter2" not in str(paused.doc["asks"])
    assert [where for where, text in outside.items() if b"hunter2" in text] == []
    shell.adjourn("answer", paused.doc["asks"][0]["id"], "no: password=swordfish1")
    shell.adjourn("resume", paused.doc["task_id"])
    assert (shell.place / "got").read_text() == "no: password=swordfish1"


@pytest.mark.parametrize(
    "redact",
    [
        'redact = ["("]',
        'redact = ["(a+)+"]',
        'redact = "x"',
        "redact = [1]",
        f"redact = {[str(n) for n in range(101)]}",
    ],
)
def test_patterns_that_cannot_be_used_keep_everything_from_starting(
    shell: Shell, redact: str
) -> None:
    configure(shell, redact)
    refused = shell.adjourn("run", "--", "touch", "started", expect=2)
    assert "`redact`" in refused.err
    assert not (shell.place / "started").exists()
    assert (
        shell.adjourn("run", "--output", "json", "--", "touch", "started", expect=2).doc["error"][
            "code"
        ]
        == "usage"
    )


# --- who can read what ----------------------------------------------------------------------------


def modes(store: Path) -> dict[str, str]:
    """Return all that is not private, by its path."""
    # A link has no mode
    files = [path for path in (store, *store.rglob("*")) if not path.is_symlink()]
    found = {path: path.lstat().st_mode for path in files}
    wanted = {path: 0o700 if stat.S_ISDIR(mode) else 0o600 for path, mode in found.items()}
    return {
        str(path): oct(mode) for path, mode in found.items() if stat.S_IMODE(mode) != wanted[path]
    }


@pytest.mark.parametrize("umask", [0o000, 0o077], ids=oct)
def test_everything_is_private_whatever_the_umask(shell: Shell, umask: int) -> None:
    """A-R86: every verb that makes a file makes it for its owner alone."""
    configure(shell)
    peeks: list[dict[str, str]] = []
    editor = shell.script(
        f"ls -ld '{shell.store}'/edits/* '{shell.store}'/edits/*/* >> edits; sed -i s/prod/test/ \"$@\"",
        name="edit.sh",
    )
    agent = shell.script('[ -n "$AUTO_APPROVAL" ] || exit 90')
    before = os.umask(umask)
    try:
        task = shell.paused(agent, "prod")["task_id"]
        peeks.append(modes(shell.store))
        ask = shell.inbox()[0]["id"]
        shell.adjourn("snooze", ask, "--for", "1h")
        shell.adjourn("approve", ask, "--edit", env={"EDITOR": str(shell.place / editor)})
        shell.adjourn("worker", "--once")
        shell.adjourn("notify", "--flush")
        shell.adjourn("logs", task)
        other = shell.json("run", "--detach", "--", "sh", "-c", "adjourn ask which? || exit 10")[
            "task_id"
        ]
        until(lambda: shell.state(other) == "waiting", what="it waits")
        shell.adjourn("resume", other, "this")
        shell.adjourn("store", "backup", "copy.db")
        shell.adjourn("restart", other, expect=10)
        shell.adjourn("cancel", other)
        clarifies = shell.paused(sys.executable, shell.agent("researcher.py"), "0")["task_id"]
        for name in ("Q1", "Q2", "Q3"):
            assert name in str(shell.inbox())
        shell.adjourn("resume", clarifies, *(f"--answer={key}=one" for key in ("Q1", "Q2", "Q3")))
        peeks.append(modes(shell.store))
        shell.adjourn("prune", "--older-than", "0")
        peeks.append(modes(shell.store))
    finally:
        os.umask(before)
    assert peeks == [{}, {}, {}]
    assert stat.S_IMODE((shell.place / "copy.db").stat().st_mode) == 0o600
    listed = (shell.place / "edits").read_text().splitlines()
    assert [line[:10] for line in listed] == ["drwx------", "-rw-------"]


@pytest.mark.one_machine("the files of a shared store lie in no repository")
def test_the_store_hides_itself_from_git(shell: Shell) -> None:
    """A-R86: the manifest's directory is in .gitignore."""
    shell.run("git", "init", "-q")
    shell.paused("sh", "-c", "exit 90")
    assert (shell.store / "session" / "pause.json").exists()
    assert shell.run("git", "status", "--porcelain", "--untracked-files=all").out == ""


def test_a_manifest_is_json_whatever_was_taken_out(shell: Shell) -> None:
    """The mark is told in JSON strings too, with the number of bytes."""
    paused = shell.paused("sh", "-c", "exit 90", "sh", "--token", 'he said "secret"')
    argv = paused["pause_reason"]["pending_tool_calls"][0]["arguments"]["argv"]
    assert argv[-1] == "‹redacted 16 bytes›"  # noqa: RUF001 -- our mark
    file = msgspec.json.decode((shell.store / "session" / "pause.json").read_bytes())
    assert file["pause_reason"] == paused["pause_reason"]
    whole = shell.json("show", "--full", paused["task_id"])
    assert (
        whole["pause_reason"]["pending_tool_calls"][0]["arguments"]["argv"][-1]
        == 'he said "secret"'
    )
    assert ADJOURN.exists()


def test_lists_and_wait_print_no_secret_where_nobody_looks(shell: Shell) -> None:
    """What a CI job prints into its log."""
    words = ("echo", "--password", "hunter2-x", f"--token=ghp_{'a' * 36}", "sk-ant-" + "b" * 40)
    task = shell.json("run", "--pause-on-approval", "--", *words, expect=10)["task_id"]
    asking = shell.script('adjourn ask "is --password hunter3-x right?" --key k || exit $?')
    shell.adjourn("run", "--", asking, expect=10)
    for verb in (["inbox"], ["tasks"], ["wait", task], ["inbox", "--output", "json"]):
        done = shell.adjourn(*verb, expect=None)
        for secret in ("hunter2-x", "hunter3-x", "a" * 36, "b" * 40):
            assert secret not in done.out + done.err, verb
        assert "redacted" in done.out
