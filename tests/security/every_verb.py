"""Every verb of the program, as its own registry has them, each with words that a person would say."""

from collections.abc import Iterator

import click

from adjourn.cli.app import cli
from tests.e2e.shell import Done, Shell
from tests.needs import needs

# By verb, in an order in which what one needs another has left. {task} and {ask} are a command that waits to be
# approved, {other} and {reject} another one, {asking} and {question} one with a question.
WORDS: dict[str, tuple[str, ...]] = {
    "run": ("run --detach -- /bin/true", "run -- /bin/true"),
    "ask": ("ask which?",),
    "clarify": ("clarify which?",),
    "plan show": ("plan show plan.toml",),
    "execute": ("execute plan.toml",),
    "inbox": ("inbox", "inbox --output json", "inbox --snoozed"),
    "tasks": ("tasks", "tasks --output json"),
    "show": ("show {task}", "show {asking} --full", "show {task} --output json"),
    "runs": ("runs {task}",),
    "logs": ("logs {asking}",),
    "config": ("config",),
    "policy check": ("policy check",),
    "policy explain": ("policy explain -- /bin/true",),
    "rules add": ("rules add -- /bin/true", "rules add --ask {ask}"),
    "rules list": ("rules list",),
    "rules revoke": ("rules revoke 1",),
    "audit verify": ("audit verify",),
    "audit export": ("audit export", "audit export --format csv"),
    "snooze": ("snooze {ask} --for 1h", "snooze {ask} --off"),
    "pause": ("pause {asking}",),
    "settle": ("settle {task}.tc_1 it-ran",),
    "decide": ("decide decision.json",),
    "answer": ("answer {question} eu",),
    "approve": ("approve {ask}",),
    "reject": ("reject {reject}",),
    "worker": ("worker --once", "worker --status"),
    "wait": ("wait {task} --timeout 5",),
    "resume": ("resume {task}", "resume {asking}"),
    "fork": ("fork {task}",),
    "restart": ("restart {task}",),
    "cancel": ("cancel {asking}",),
    "notify": ("notify", "notify --check", "notify --flush"),
    "doctor": ("doctor",),
    "prune": ("prune --older-than 0",),
    "store accept": ("store accept --yes",),
    "store adopt": ("store adopt --yes",),
    "store backup": ("store backup backup.db",),
    "store forget": ("store forget --yes",),
    "store migrate": ("store migrate",),
    "store roles": ("store roles",),
    "demo": ("demo",),
    "completion": ("completion bash",),
    "delegate add": ("delegate add agent:lead {task}",),
    "delegate list": ("delegate list",),
    "delegate revoke": ("delegate revoke 1",),
    "users add": ("users add anna",),
    "users link": ("users link anna",),
    "users list": ("users list",),
    "users remove": ("users remove anna",),
    "setup": ("setup claude", "setup codex --undo"),
    "mcp": ("mcp",),
    "watch": ("watch",),
}


def leaves(command: click.Command = cli, name: str = "") -> Iterator[str]:
    """Return every verb of the registry, those below others included."""
    if not isinstance(command, click.Group):
        yield name
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found
        yield from leaves(found, f"{name} {each}".strip())


def try_verbs(shell: Shell, names: dict[str, str], *, only: frozenset[str] | None = None) -> str:
    """Use verbs as a person would, whether they work or not; return all that they printed."""
    said: list[str] = []
    for verb, lines in WORDS.items():
        for line in lines if only is None or verb in only else ():
            words = line.format_map(names).split()
            if verb == "watch":  # it goes on until somebody ends it
                words = ["timeout", "--signal=INT", "2", needs("adjourn"), *words]
                done: Done = shell.run(*words, expect=None)
            else:
                done = shell.adjourn(*words, expect=None)
            report = f"{line}: {done.out}{done.err}"
            assert "Traceback" not in done.err, report
            assert "a defect in adjourn" not in done.out + done.err, report
            said.append(done.out + done.err)
    return "".join(said)
