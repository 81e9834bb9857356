"""Others are told what happened.

At least once, in order, and never at the expense of a decision or a run.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import msgspec
import pytest

from tests.contract.test_notifier import SECRET
from tests.e2e.shell import Document, Shell, until
from tests.receiver import Receiver, answering, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a server on this machine."""
    with receiving() as there:
        yield there


def configure(shell: Shell, *tables: str) -> Path:
    path = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"[[notify]]\n{table}\n" for table in tables))
    return path


def to(receiver: Receiver, **more: str) -> str:
    keys = {"webhook": f'"{receiver.url}"', "secret": f'"{SECRET}"', **more}
    return "\n".join(f"{key} = {value}" for key, value in keys.items())


def documents(receiver: Receiver) -> list[Document]:
    return [msgspec.json.decode(body, type=Document) for _, body in receiver.taken]


def events(receiver: Receiver) -> list[str]:
    return [document["event"] for document in documents(receiver)]


@contextmanager
def worker(shell: Shell) -> Iterator[int]:
    """Have a worker at work, and stop it."""
    process = shell.start("worker", stderr=None)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout
        process.stdout.close()


def follower(worker_pid: int) -> int:
    """Return the process that delivers for a worker."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
            if b"--follow" in words and int(parent) == worker_pid:
                return int(entry)
    return 0


def test_a_flush_tells_what_happened_since_and_nothing_twice(
    shell: Shell, receiver: Receiver
) -> None:
    configure(shell, to(receiver))
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')
    shell.adjourn("notify", "--flush")
    assert events(receiver) == ["pause"]
    assert documents(receiver)[0]["asks"][0]["id"] == task["asks"][0]["id"]
    shell.adjourn("approve", task["asks"][0]["id"])
    shell.adjourn("resume", task["task_id"])
    done = shell.json("notify", "--flush")
    assert events(receiver) == ["pause", "decision", "completion"]
    assert done["notifiers"][0]["delivered"] == 3
    shell.adjourn("notify", "--flush")
    assert shell.json("notify")["notifiers"][0]["delivered"] == 3  # all of them, also later
    assert len(receiver.taken) == 3


def test_only_what_one_wants_to_hear_is_told(shell: Shell, receiver: Receiver) -> None:
    configure(shell, to(receiver, on='["failure"]'))
    shell.adjourn("run", "--", "sh", "-c", "exit 5", expect=1)
    shell.paused("sh", "-c", "exit 90")
    shell.adjourn("notify", "--flush")
    assert events(receiver) == ["failure"]


def test_a_worker_tells_by_itself_in_the_order_in_which_it_happened(
    shell: Shell, receiver: Receiver
) -> None:
    configure(shell, to(receiver))
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')
    with worker(shell):
        until(lambda: events(receiver) == ["pause"], what="the pause is told")
        shell.adjourn("approve", task["asks"][0]["id"])
        until(lambda: len(receiver.taken) == 3, what="the completion is told")
    assert events(receiver) == ["pause", "decision", "completion"]


def test_a_worker_that_runs_once_tells_before_it_leaves(shell: Shell, receiver: Receiver) -> None:
    configure(shell, to(receiver))
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')
    shell.adjourn("approve", task["asks"][0]["id"])
    shell.adjourn("worker", "--once")
    assert events(receiver) == ["pause", "decision", "completion"]


def test_a_receiver_that_is_down_is_told_later_with_the_same_ids_and_in_order(
    shell: Shell, receiver: Receiver
) -> None:
    configure(shell, to(receiver))
    receiver.answer = answering(500)
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')
    shell.adjourn("approve", task["asks"][0]["id"])
    shell.adjourn("resume", task["task_id"])
    refused = shell.json("notify", "--flush", expect=1)["notifiers"][0]
    assert refused["error"] == "it answered 500"
    assert refused["waiting"] == 3
    first = receiver.taken[0][0]["webhook-id"]
    receiver.taken.clear()
    receiver.answer = answering(200)
    shell.adjourn("notify", "--flush")
    assert events(receiver) == ["pause", "decision", "completion"]
    assert receiver.taken[0][0]["webhook-id"] == first
    assert shell.json("notify")["notifiers"][0]["waiting"] == 0


def test_what_one_receiver_refuses_the_other_is_told(shell: Shell, receiver: Receiver) -> None:
    configure(shell, 'command = ["false"]', to(receiver))
    shell.paused("sh", "-c", "exit 90")
    shell.adjourn("notify", "--flush", expect=1)
    assert events(receiver) == ["pause"]


def test_a_hanging_receiver_delays_neither_decisions_nor_runs_nor_other_receivers(
    shell: Shell, receiver: Receiver
) -> None:
    hanging = Receiver()
    hanging.answer = lambda _: time.sleep(20)
    configure(shell, to(hanging, name='"hangs"', timeout="15"), to(receiver, name='"works"'))
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')
    with worker(shell):
        until(lambda: bool(hanging.taken), what="the receiver hangs")
        begun = time.monotonic()
        shell.adjourn("approve", task["asks"][0]["id"])
        decided = time.monotonic() - begun
        until(lambda: shell.state(task["task_id"]) == "succeeded", what="it ran")
        until(lambda: len(receiver.taken) == 3, what="the other is told")
        assert decided < 5
        assert time.monotonic() - begun < 12
    assert len(hanging.taken) == 1
    hanging.server.shutdown()
    hanging.server.server_close()


def test_a_hanging_receiver_delays_no_worker_that_is_told_to_stop(
    shell: Shell, receiver: Receiver
) -> None:
    """What was under way is broken off, counts as not told, and is told by the next who delivers."""
    receiver.answer = lambda _: time.sleep(30)
    noted = shell.place / "pid"
    hanging = f'["sh", "-c", "echo $$ > {noted}; exec sleep 100"]'
    configure(
        shell,
        to(receiver, name='"webhook"', timeout="25"),
        f'command = {hanging}\nname = "command"\ntimeout = 25',
    )
    shell.paused("sh", "-c", "exit 90")
    process = shell.start("worker", stdout=None, stderr=None)
    until(
        lambda: bool(receiver.taken) and noted.exists() and bool(noted.read_text()),
        what="both hang",
    )
    begun = time.monotonic()
    process.terminate()
    assert process.wait(30) == 0
    assert time.monotonic() - begun < 4
    assert not Path(f"/proc/{noted.read_text().strip()}").exists()
    waiting = {
        each["name"]: (each["waiting"], each["error"]) for each in shell.json("notify")["notifiers"]
    }
    assert waiting == {"webhook": (1, None), "command": (1, None)}


def test_what_was_delivered_but_not_recorded_is_told_again_under_the_same_id(
    shell: Shell, receiver: Receiver
) -> None:
    configure(shell, to(receiver))

    def never(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(3)
        answering(200)(handler)

    receiver.answer = never
    shell.paused("sh", "-c", "exit 90")
    with worker(shell) as pid:
        until(lambda: bool(receiver.taken), what="it was delivered")
        receiver.answer = answering(200)
        os.kill(follower(pid), signal.SIGKILL)
        until(lambda: len(receiver.taken) == 2, what="it is told again")
        until(lambda: shell.json("notify")["notifiers"][0]["waiting"] == 0, what="it is recorded")
    assert len({headers["webhook-id"] for headers, _ in receiver.taken}) == 1


def test_what_delivers_leaves_with_a_worker_that_is_killed(
    shell: Shell, receiver: Receiver
) -> None:
    configure(shell, to(receiver))
    shell.paused("sh", "-c", "exit 90")
    process = shell.start("worker", stdout=None, stderr=None)
    until(lambda: bool(receiver.taken), what="it was delivered")
    child = follower(process.pid)
    process.kill()
    process.wait()
    until(lambda: not Path(f"/proc/{child}").exists(), what="it has left")


@pytest.mark.parametrize(
    "variable", [{}, {"XDG_CONFIG_HOME": ".config-of-project"}, {"XDG_CONFIG_HOME": "."}]
)
def test_a_project_cannot_have_anybody_told(shell: Shell, variable: dict[str, str]) -> None:
    table = '[[notify]]\ncommand = ["touch", "/tmp/never"]\n'
    home = shell.place / "home"
    home.mkdir()
    environment = {"HOME": str(home), **variable}
    shell.adjourn("run", "--", "sh", "-c", "exit 90", expect=10, env=environment)
    for place in (".adjourn", "adjourn", ".config-of-project/adjourn", ".adjourn/adjourn"):
        (shell.place / place).mkdir(parents=True, exist_ok=True)
        for name in ("config.toml", "policy.toml"):
            (shell.place / place / name).write_text(table)
    assert (
        shell.run("adjourn", "notify", "--output", "json", env=environment).doc["notifiers"] == []
    )


BAD = {
    "[[notify]]\ncolour = 1\n": "[[notify]] number 1: object contains unknown field `colour`",
    '[[notify]]\ncommand = "mail me"\n': "`command`: expected `array`",
    '[[notify]]\ncommand = ["a"]\nwebhook = "https://a/"\n': "it needs one of `command`, `webhook`",
    '[[notify]]\non = ["pause"]\n': "it needs one of `command`, `webhook`",
    '[[notify]]\ncommand = ["a"]\non = ["lunch"]\n': "`on`: invalid enum value 'lunch'",
    '[[notify]]\ncommand = ["a"]\ntimeout = 0\n': "`timeout` must be above 0",
    '[[notify]]\ncommand = ["a"]\ntimeout = nan\n': "`timeout` must be above 0",
    '[[notify]]\ncommand = ["a"]\nname = "../x"\n': "`name` must be",
    '[[notify]]\ncommand = ["a"]\n[[notify]]\ncommand = ["a"]\n': "number 2: `name`: another is called a already",
    '[[notify]]\ncommand = ["a"]\nsecret = "x"\n': "`secret` is for a webhook",
    '[[notify]]\nwebhook = "https://a/"\n': "exactly one of `secret`",
    '[[notify]]\nwebhook = "http://example.com/"\nsecret = "x"\n': "must be https",
    '[[notify]]\nwebhook = "ftp://a/"\nsecret = "x"\n': "must be https",
    '[[notify]]\nwebhook = "https://u:p@a/"\nsecret = "x"\n': "must not carry a user",
    '[[notify]]\nwebhook = "https://a:99999/"\nsecret = "x"\n': "`webhook` is not a URL",
    '[[notify]]\nwebhook = "https://a/"\nsecret = "hunter2"\n': "`secret`: a secret is whsec_",
    '[[notify]]\nwebhook = "https://a/"\nsecret_env = "NO_SUCH"\n': "there is no variable NO_SUCH",
    '[[notify]]\nwebhook = "https://a/"\nsecret_file = "no"\n': "`secret_file`: ",
    "[notify]\na = 1\n": "write [[notify]], with two brackets",
    "notify = 3\n": "write [[notify]], with two brackets",
    "[[notify]\n": "config.toml: ",
    "notify = [1]\n": "[[notify]] number 1: expected `object`",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_config_is_told_with_its_file_table_and_key(shell: Shell, text: str) -> None:
    path = configure(shell)
    path.write_text(text)
    told = shell.adjourn("notify", "--check", expect=2).err
    assert str(path) in told
    assert BAD[text] in told
    assert "hunter2" not in told


def test_a_config_that_others_can_write_is_not_followed(shell: Shell) -> None:
    configure(shell, 'command = ["true"]').chmod(0o666)
    assert "can be written by others" in shell.adjourn("notify", "--check", expect=2).err


def test_a_bad_config_blocks_neither_decisions_nor_runs_and_is_said_once(shell: Shell) -> None:
    configure(shell, "colour = 1")
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')
    shell.adjourn("approve", task["asks"][0]["id"])
    worked = shell.adjourn("worker", "--once")
    assert shell.state(task["task_id"]) == "succeeded"
    assert worked.err.count("unknown field `colour`") == 1


def test_nothing_of_it_is_loaded_where_people_decide(shell: Shell) -> None:
    configure(shell, 'command = ["true"]')
    task = shell.paused("sh", "-c", "exit 90")
    code = "import sys; from adjourn.cli.app import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    for words in (["inbox"], ["approve", task["asks"][0]["id"]]):
        loaded = shell.run("python", "-c", code, *words).err.split()
        kept_out = {
            "adjourn.supervision.notify_loop",
            "adjourn.wiring.notifications",
            "adjourn.views.notice",
        }
        if words != ["inbox"]:  # where nobody looks, as here, it takes secrets out, as configured
            kept_out |= {"tomllib", "adjourn.core.redact"}
        kept_out |= {
            "adjourn.core.edit.edit",
            "adjourn.core.edit.argument_schema",
            "difflib",
        }
        assert kept_out & set(loaded) == set()


def test_inside_a_run_nobody_delivers(shell: Shell, receiver: Receiver) -> None:
    configure(shell, to(receiver))
    shell.adjourn("run", "--", "sh", "-c", "adjourn notify --flush; test $? = 5")
    assert receiver.taken == []
