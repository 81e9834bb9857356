"""adjourn show: one task, whole."""

import sys
from typing import Literal

import click
import msgspec

from adjourn.clarifications.exchange import prompt_of
from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly
from adjourn.controller.controller import Controller
from adjourn.core.agent.transcript import Message, Tally, Usage
from adjourn.core.ask import Ask
from adjourn.core.errors import Conflict
from adjourn.core.task import Task
from adjourn.core.text.render import prose
from adjourn.views.block import BLANK, AgentWords
from adjourn.views.task import (
    ask_blocks,
    can_resume_at_once,
    settled_blocks,
    settling_blocks,
)
from adjourn.views.transcript import transcript_blocks
from adjourn.wiring import has_worker
from adjourn.wiring.json_documents import shown_ask_doc, shown_task_doc
from adjourn.wiring.scenes import gather_task, kept_transcript, task_page


class TranscriptDoc(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a task, and what they used."""

    schema_version: Literal[1] = 1
    task_id: str
    messages: tuple[Message, ...]
    steps: int
    usage: Usage


@verb("show", prints_whole=True)
@click.argument("task", type=TASK_NAME, metavar="ID")
@click.option("--full", is_flag=True, help="Cut nothing.")
@click.option(
    "--transcript", is_flag=True, help="Only print the conversation: ours, Claude Code's, Codex's."
)
@click.option(
    "--resume-prompt",
    is_flag=True,
    help="Only print the message that the agent gets with its answers.",
)
def command(
    session: Session, *, task: str, full: bool, transcript: bool, resume_prompt: bool
) -> None:
    """Show a task: its command, state, asks, calls and history.

    ID may be that of an ask: then only the ask is shown.
    """
    controller = session.open_controller()
    session.shows_all = full
    session.is_copy = not full
    named = controller.decisions.find(task)
    found = controller.decisions.find_task(task)
    if not isinstance(named, Task) and not (resume_prompt or transcript):
        _print_ask(session, controller, named)
    elif resume_prompt:
        _print_prompt(session, controller, found)
    elif transcript:
        _print_transcript(session, controller, found)
    else:
        _print_task(session, controller, found)


def _print_task(session: Session, controller: Controller, task: Task) -> None:
    commands, cut = session.commands, session.cut(task.id)
    whole = gather_task(
        controller, session.root, task, commands=commands, shows_all=session.shows_all
    )
    if session.wants_json:
        if why := whole.refused_response:
            session.warn(f"adjourn: the response file is not taken: {prose(why)}")
        session.print_document(shown_task_doc(whole, commands))
        return

    session.show(
        task_page(
            controller,
            session.root,
            whole,
            commands=commands,
            cut=cut,
            shows_all=session.shows_all,
        )
    )


def _print_ask(session: Session, controller: Controller, ask: Ask) -> None:
    scene = controller.scene_of(ask)
    if session.wants_json:
        document = msgspec.to_builtins(shown_ask_doc(controller, ask))
        session.print_document({"schema_version": 1, **document})
        return
    cut = session.cut(ask.id)
    blocks = ask_blocks(ask, scene, now=controller.now(), cut=cut)
    if ask.is_open:
        # The last open ask can go on with its task, unless a worker does so anyway
        resumes = can_resume_at_once(scene) and not has_worker(session.root, scene.task.spec.pool)
        blocks += [BLANK, *settling_blocks(ask, session.commands, resumes=resumes)]
    else:
        blocks += settled_blocks(msgspec.structs.replace(scene, asks=(ask,)), cut=cut)
    session.show(blocks)


def _print_transcript(session: Session, controller: Controller, task: Task) -> None:
    messages = kept_transcript(controller, task, shows_all=session.shows_all)
    tally = Tally(messages)
    if session.wants_json:
        doc = TranscriptDoc(
            task_id=task.id, messages=tuple(messages), steps=tally.steps, usage=tally.usage
        )
        session.print_document(doc)
    else:
        session.show(transcript_blocks(messages, tally, cut=session.cut(task.id)))


def _print_prompt(session: Session, controller: Controller, task: Task) -> None:
    """Print what an agent is told: as it is for programs, and to a person marked as what it is."""
    prompt = prompt_of(controller, task.id)
    if prompt is None:
        raise Conflict(
            f"task {task.id} has no answered clarification", way_out=f"adjourn show {task.id}"
        )
    prompt = prompt.rstrip("\n")
    if sys.stdout.isatty():
        session.show([AgentWords(text=prompt)])
    else:
        print_exactly(prompt)
