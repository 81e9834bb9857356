"""adjourn run: put a command under adjourn."""

import os
from collections.abc import Iterator, Mapping
from shutil import which
from typing import NoReturn, TypedDict, Unpack

import click

from adjourn.cli.foreground import (
    naming,
    report,
    run_detached,
    run_to_the_end,
    supervising,
)
from adjourn.cli.options import (
    DURATION,
    TAKE_A_PROMPT,
    Amount,
    AnyOf,
    CommandAfterDashes,
    verb,
)
from adjourn.cli.session import Session
from adjourn.cli.verbs._resuming import run_until_settled
from adjourn.controller.controller import Controller
from adjourn.core.errors import Misuse
from adjourn.core.states import ENDED
from adjourn.core.task import DEFAULT_GRACE, DEFAULT_POOL, Spec, Task
from adjourn.core.text.render import visible
from adjourn.ports.runner import RunnerKind
from adjourn.process.ancestry import parent_run_in
from adjourn.settings.config import exit_codes_setting, wants_pauses
from adjourn.wiring.runners import (
    DEFAULT_AGENT,
    RunnerNames,
    Work,
    command_work,
    find_kind,
    prompt_work,
)


class Given(TypedDict):
    """The options of a run."""

    detach: bool
    decision_arg: bool
    grace: float
    pool: str
    expires: int | None
    pause_on_approval: bool | None
    exit_codes: str | None
    resume_with: str | None
    runner: str | None
    options: tuple[str, ...]
    model: str | None
    base_url: str | None
    max_steps: str | None
    max_tokens: str | None
    max_cost: str | None
    on_text: str | None
    mcp: str | None


_SETTINGS = ("model", "base_url", "max_steps", "max_tokens", "max_cost", "on_text", "mcp")


@verb(
    "run",
    cls=CommandAfterDashes,
    options_metavar="[OPTIONS] -- COMMAND [ARGUMENT]... | [OPTIONS] PROMPT",
    context_settings=TAKE_A_PROMPT,
)
@click.option(
    "--pause-on-approval/--no-pause-on-approval",
    default=None,
    help="Ask before it starts, unless the policy lets it run; exit 10. Agents of others ask"
    " unless told not to.",
)
@click.option(
    "--exit-codes",
    type=click.Choice(["ask", "none"]),
    help="What exit codes 10 and 90 of COMMAND mean if it asked nothing: a request for approval"
    " (ask), or a failure (none).",
)
@click.option(
    "--resume-with",
    metavar="TEMPLATE",
    help="How COMMAND, an agent that exits 10 with a checkpoint_id, is resumed by itself:"
    " 'CMD -c {checkpoint_id} {flags}', or with {input}.",
)
@click.option(
    "--runner",
    type=AnyOf(RunnerNames(of_agents=True)),
    metavar="NAME",
    help="Who works on PROMPT: agent (the built-in one, the default), claude, codex, acp:NAME for"
    " an agent that speaks ACP (with acp alone, its command stands after two dashes), or one"
    " that a package brings.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="The model that the agent asks: openai:NAME, anthropic:NAME, PROVIDER:NAME.",
)
@click.option("--base-url", metavar="URL", help="The URL of the model's server, if it is your own.")
@click.option("--max-steps", metavar="N", help="Model turns until it pauses, since a resume.")
@click.option("--max-tokens", metavar="N", help="Tokens that the whole task may use.")
@click.option("--max-cost", metavar="USD", help="Dollars that the whole task may cost.")
@click.option(
    "--on-text",
    metavar="pause|complete",
    help="What a reply without tool calls means: a question, or done.",
)
@click.option(
    "--mcp", metavar="FILE", help="A file that lists MCP servers. The agent gets their tools."
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the runner; repeat it for more.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Return the task's id once it has begun; a copy of this command supervises it.",
)
@click.option(
    "--decision-arg",
    is_flag=True,
    help="After approval, also pass --approval-decision=VALUE to the command.",
)
@click.option(
    "--grace",
    type=Amount(3600),
    default=DEFAULT_GRACE,
    show_default=True,
    metavar="SECONDS",
    help="How long an interrupted command may take to leave before it is killed.",
)
@click.option(
    "--pool",
    default=DEFAULT_POOL,
    show_default=True,
    metavar="NAME",
    help="Which workers may run it.",
)
@click.option(
    "--expires-after",
    "expires",
    type=DURATION,
    metavar="TIME",
    help="Let its asks expire: 90s, 15m, 8h, 2d. Expired is rejected.",
)
@click.pass_context
def command(context: click.Context, session: Session, **given: Unpack[Given]) -> int:
    """Run COMMAND under adjourn, or have an agent work on PROMPT.

    It exits 0 completed, 1 failed, 10 paused.

    A command that exits 10 or 90 waits for approval of its own command line and is then run again
    with AUTO_APPROVAL set. One that calls `adjourn ask` waits for the answer. With
    --pause-on-approval nothing of it starts before the policy or a person has let it; an agent
    stops before each call that the policy does not let pass.
    """
    options = (*given["options"], *_settings(given))
    work = _work(session, context, given["runner"], options)
    kind = find_kind(work.get("runner", "command"))
    is_gated = given["pause_on_approval"]
    if is_gated is None:
        is_gated = wants_pauses() or kind.is_gated_by_default
    if kind.driver and not is_gated:
        session.warn(ungated_line(kind.name))
    spec = Spec(
        **work,
        workspace=os.getcwd(),
        decision_arg=given["decision_arg"],
        grace=given["grace"],
        pool=given["pool"],
        expires_after=given["expires"],
        parent_run=parent_run_in(session.root),
        resume_with=_read_resume_with(given["resume_with"], kind),
        pause_on_approval=is_gated,
        asks_by_exit_code=(given["exit_codes"] or exit_codes_setting()) == "ask",
    )
    # Names what a script starts, so that the script finds it again when it is run again
    key = f"run:{spec.workspace}\0" + "\0".join((*spec.argv, spec.prompt or ""))

    def start(controller: Controller, supervisor: str | None = None) -> Task:
        by = session.principal(controller.decisions)
        return controller.tasks.start(spec, by=by, key=key, supervisor=supervisor)

    if given["detach"]:
        return run_detached(session, start)
    with supervising(session) as (controller, supervisor):
        task = start(controller, supervisor.name)
        with naming(session, task):
            if not spec.parent_run:
                return run_until_settled(session, controller, supervisor, task)
            # An earlier run of the enclosing script may have had it run already
            task = run_to_the_end(session, supervisor, task)
            if task.state not in ENDED:
                controller.tasks.leave_open(spec.parent_run, task)
            return report(session, controller, task)


def _settings(given: Given) -> Iterator[str]:
    """Return the settings that have flags of their own as options of the runner."""
    values: Mapping[str, object] = given
    yield from (f"{key}={values[key]}" for key in _SETTINGS if values[key] is not None)


def _read_resume_with(template: str | None, kind: RunnerKind) -> tuple[str, ...]:
    if template is None:
        return ()
    if kind.driver:
        raise Misuse(
            "--resume-with is for a command: adjourn resumes its own agents by itself",
            way_out="adjourn run --resume-with TEMPLATE -- COMMAND",
        )
    from adjourn.core.foreign import read_template  # seldom needed

    return read_template(template)


def ungated_line(runner: str) -> str:
    """Say in one line that nobody is asked before an agent's calls run."""
    return (
        f"adjourn: nobody is asked: {runner} makes every call that no policy forbids"
        " (--pause-on-approval asks first)"
    )


def _work(
    session: Session,
    context: click.Context,
    runner: str | None,
    options: tuple[str, ...],
) -> Work:
    """Return what is to be done: a command after two dashes, or a prompt before them."""
    argv: list[str] = context.meta.get("command", [])
    if argv and not context.args and not runner and not options:
        return command_work(argv) if argv[0] else _nothing()
    if argv and runner and len(context.args) == 1 and find_kind(runner).has_agents:
        # An agent that has no name here: its command stands after two dashes
        from shlex import join  # slow to import, and seldom needed

        return prompt_work(runner, context.args[0], (*options, f"command={join(argv)}"))
    unknown = next((word for word in context.args[:1] if word.startswith("-")), None)
    if unknown:
        raise Misuse(f"no such option: {visible(unknown)}", way_out="adjourn run --help")
    if len(context.args) == 1 and not argv:
        (prompt,) = context.args
        if session.is_prompt or not (_is_one_word(prompt) or which(prompt)):
            return prompt_work(runner or DEFAULT_AGENT, prompt, options)
        # Before it is quoted, which would hide a secret from it
        (word,) = session.open_redactor().words([prompt])
        if runner or options:
            named = ("--runner", runner) if runner else ()
            raise Misuse(
                f"{visible(word)} is one word: it may be meant as a command, and no agent gets it",
                way_out=session.commands("-a", word, *named),
            )
        raise Misuse(
            f"{visible(word)} is one word: a command stands after two dashes, a prompt after -a",
            way_out=session.commands("run", "--", word),
        )
    if context.args and not runner:
        # Before they are quoted, which would hide a secret from it
        words = session.open_redactor().words(context.args)
        raise Misuse(
            "the command stands after two dashes",
            way_out=session.commands("run", "--", *words),
        )
    if runner or options:
        raise Misuse(
            "an agent takes one prompt, in quotes",
            way_out=f'adjourn run --runner {runner or DEFAULT_AGENT} "PROMPT"',
        )
    return _nothing()


def _is_one_word(text: str) -> bool:
    """Say whether a text may be the name of a program. Many scripts write prose without blanks."""
    return text.isascii() and len(text.split()) == 1


def _nothing() -> NoReturn:
    raise Misuse("there is no command to run", way_out="adjourn run -- COMMAND [ARGUMENT]...")
