"""adjourn show: one task, whole."""

import sys

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.agent.calls import Report
from adjourn.core.call import Call
from adjourn.core.documents import Manifest, manifest_of
from adjourn.core.errors import Conflict
from adjourn.core.kept_documents import ORIGINAL
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import agent_words, argv_lines, prose, shortened, visible
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Event
from adjourn.supervision.workspace_notes import note_changes
from adjourn.views.agent import resumability_lines, resumability_of, usage_words
from adjourn.views.call import call_block, cut_for
from adjourn.views.next_step import resume_hint
from adjourn.views.task import edit_block, settled_block, standing
from adjourn.views.workspace import since_lines, since_the_pause
from adjourn.wiring import has_responses

_RECENT = 12


@verb("show")
@click.argument("task", metavar="ID")
@click.option("--full", is_flag=True, help="Cut nothing.")
@click.option(
    "--transcript", is_flag=True, help="Only print the conversation of the built-in agent."
)
@click.option(
    "--resume-prompt",
    is_flag=True,
    help="Only print what an agent is told when it goes on with its answers.",
)
def command(
    session: Session, *, task: str, full: bool, transcript: bool, resume_prompt: bool
) -> None:
    """Show a task: what it is, how it stands, what it waits for, and what happened."""
    controller = session.controller
    session.cuts = not full
    session.is_copy = not full
    if resume_prompt:
        _say_prompt(session, _prompt(session, controller.decisions.find_task(task).id))
        return
    if transcript:
        from adjourn.views.agent import show_transcript

        show_transcript(session, controller.decisions.find_task(task))
        return
    found = controller.decisions.find_task(task)
    note_changes(controller, found)
    scene = controller.scene(found.id)
    refusal = _refusal(session, scene.task.id)
    if session.wants_json:
        if refusal:
            session.warn(f"adjourn: {refusal}")
        session.document(_document(session, scene))
    else:
        _tell(session, scene, refusal)


def _tell(session: Session, scene: Scene, refusal: str | None) -> None:
    with session.controller.store.read() as view:
        events = view.events(scene.task.id)
        calls = view.calls(scene.task.id)
    session.say(standing(session, scene, now=session.now()))
    if scene.task.state is TaskState.QUEUED:
        from adjourn.cli.unattended import unattended_lines  # seldom needed

        for line in unattended_lines(session, [scene.task], now=session.now()):
            session.say(line)
    session.say("\n".join(["", *([refusal, ""] if refusal else []), *_what_it_is(session, scene)]))
    if since := since_the_pause(session, scene):
        session.say("\n".join(["", *since_lines(since)]))
    if resumability := resumability_of(session, scene.task):
        session.say("\n".join(["", *resumability_lines(resumability)]))
    if settled := settled_block(session, scene):
        session.say("\n".join(["", *settled]))
    if not session.cuts:
        session.say(
            "\n".join(
                ["", "calls", *(line for call in calls for line in _call_lines(session, call))]
            )
        )
    session.say("\n".join(["", *_history(events, full=not session.cuts)]))


def _document(session: Session, scene: Scene) -> Manifest:
    """Return the manifest with what only a look at the task and its surroundings can tell."""
    return msgspec.structs.replace(
        manifest_of(scene, hint=resume_hint(session, scene)),
        workspace=since_the_pause(session, scene) or msgspec.UNSET,
        resumability=resumability_of(session, scene.task) or msgspec.UNSET,
    )


def _call_lines(session: Session, call: Call) -> list[str]:
    original = session.controller.documents.read(call.task_id, ORIGINAL.of(call.tool_call_id))
    edit = edit_block(session, call, original) if original is not None else []
    return [*call_block(session, call), *edit, f"    is   {call.state}"]


def _prompt(session: Session, task_id: str) -> str:
    from adjourn.clarifications.exchange import prompt_of

    prompt = prompt_of(session.controller, task_id)
    if prompt is None:
        raise Conflict(
            f"task {task_id} has no answered clarification", way_out=f"adjourn show {task_id}"
        )
    return prompt.rstrip("\n")


def _say_prompt(session: Session, prompt: str) -> None:
    """Print what an agent is told: as it is for programs, and to a person marked as what it is."""
    if sys.stdout.isatty():
        session.say("\n".join(agent_words(prompt, columns=session.columns)))
    else:
        session.hand_out(prompt)


def _refusal(session: Session, task_id: str) -> str | None:
    """Say what is wrong with a response file that lies there and was not taken."""
    if not has_responses(session.root):
        return None
    from adjourn.clarifications.exchange import why_refused

    why = why_refused(session.root, task_id)
    return f"the response file is not taken: {prose(why)}" if why else None


def _what_it_is(session: Session, scene: Scene) -> list[str]:
    spec = scene.task.spec
    cut = cut_for(session, scene.task.id)
    words = (
        argv_lines(spec.argv, cut=cut) if spec.prompt is None else [shortened(spec.prompt, cut=cut)]
    )
    head = "command" if spec.prompt is None else f"prompt for {spec.runner}"
    lines = [head, *(f"  {line}" for line in words), f"  in   {visible(spec.workspace)}"]
    if scene.report:
        lines.append(_used(scene.report))
    if scene.run and scene.run.checkpoint_id:
        lines.append(f"checkpoint {scene.run.checkpoint_id}")
    if spec.plan:
        lines.append(f"{spec.item} of the plan {visible(spec.plan)}")
    if spec.parent_run:
        lines.append(f"started by run {spec.parent_run}")
    return lines


def _used(report: Report) -> str:
    """Say what the newest run used, and what all did if there were others."""
    overall = report.task or report.spent
    together = f"; all runs together {usage_words(overall)}" if overall != report.spent else ""
    return f"used {usage_words(report.spent)}{together}"


def _history(events: list[Event], *, full: bool) -> list[str]:
    shown = events if full else events[-_RECENT:]
    left_out = len(events) - len(shown)
    head = [f"history ({left_out} earlier left out; --full shows all)" if left_out else "history"]
    return head + [
        f"  {stamp(event.at)}  {event.by:<10} {event.kind.replace('_', ' ')}{_facts(event)}"
        for event in shown
    ]


def _facts(event: Event) -> str:
    facts = ", ".join(f"{name} {prose(str(fact))}" for name, fact in event.facts.items())
    return f"  ({facts})" if facts else ""
