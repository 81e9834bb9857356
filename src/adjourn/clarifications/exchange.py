"""Exchanges words with files.

Takes responses in, once, and puts requests, checkpoints, answers and feedback out.
"""

import os
from collections.abc import Callable

import msgspec

from adjourn.clarifications import files, log
from adjourn.controller.asks import CHECKPOINT, RESPONSE, clarification_of
from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.clarification import (
    Checkpoint,
    Clarification,
    Refusal,
    checkpoint_of,
    encoded_checkpoint,
    formatted_questions,
    read_checkpoint,
    replies_to,
    resume_prompt,
)
from adjourn.core.digest import sha256
from adjourn.core.errors import AdjournError, Conflict, Misuse, StoreProblem
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Run, Task
from adjourn.core.text.render import visible
from adjourn.system.files import write_whole
from adjourn.system.yaml import NotYet

Refuse = Callable[[Refusal], None]


# --- responses come in ----------------------------------------------------------------------------


def take_responses(controller: Controller, root: str, *, refuse: Refuse) -> list[str]:
    """Give the answers in response files to their asks; return the tasks that got theirs.

    Nothing is taken in part.
    """
    return [
        task_id
        for task_id in files.tasks_with_response(root)
        if take_response(controller, root, task_id, refuse=refuse)
    ]


def take_response(controller: Controller, root: str, task_id: str, *, refuse: Refuse) -> bool:
    """Give the answers in one task's response file to its asks, if it is there, whole, right and new."""
    digest = ""
    try:
        found = files.read_plain(files.response_path(root, task_id))
        digest = sha256(found.content).hex() if found else ""
        return found is not None and _take(controller, root, task_id, found)
    except NotYet as reason:
        log.say(f"the response for {visible(task_id)} is not whole yet: {reason}")
    except StoreProblem:
        raise
    except AdjournError as error:
        refuse(Refusal(task_id=task_id, digest=digest, why=error.why))
    return False


def once(root: str, say: Callable[[str], None]) -> Refuse:
    """Return what tells of each refused response once, whoever looks at it how often.

    `why_refused` says it again.
    """

    def refuse(refusal: Refusal) -> None:
        if files.note_refusal(root, refusal):
            say(refusal.sentence)

    return refuse


def why_refused(root: str, task_id: str) -> str | None:
    """Say what is wrong with the response that lies there for a task, if one does and something is."""
    noted = files.noted_refusal(root, task_id)
    try:
        found = files.read_plain(files.response_path(root, task_id))
        if found is None:
            return None
        if noted and noted.digest == sha256(found.content).hex():
            return noted.why
        files.response_of(found.content, task_id=task_id)
    except NotYet as reason:
        return f"it is not whole yet: {reason}"
    except Misuse as error:
        return error.sentence
    return None


def _take(controller: Controller, root: str, task_id: str, found: files.Found) -> bool:
    digest = sha256(found.content)
    with controller.store.read() as view:
        task = view.task(task_id)
        asks = view.asks(task_id)
        if view.document(task_id, RESPONSE) == digest:
            return False  # it was taken before
    if task.state in ENDED:
        raise Conflict(f"task {task_id} has {task.state}", way_out=f"adjourn show {task_id}")
    response = files.response_of(found.content, task_id=task_id)
    by = Principal(name=f"file:uid:{found.owner}")
    if not controller.asks.respond(task_id, replies_to(response, asks), digest=digest, by=by):
        return False
    files.remove(files.refused_path(root, task_id))
    log.say(log.READY.format(agent=task_id))
    return True


def clear_taken(controller: Controller, root: str, task_id: str) -> None:
    """Take away a response that was taken, so that it is never taken for an answer to the next request."""
    taken = controller.documents.read(task_id, RESPONSE)
    if taken is None:
        return
    if files.response_digest(root, task_id) == taken:
        files.remove(files.response_path(root, task_id))
    controller.documents.keep(task_id, RESPONSE, None)


# --- requests and checkpoints go out --------------------------------------------------------------


def write_checkpoint(
    controller: Controller,
    root: str,
    task: Task,
    clarification: Clarification,
    draft: Checkpoint,
    *,
    now: int,
) -> None:
    """Keep a checkpoint, and put a copy where agents look for it."""
    whole = checkpoint_of(
        clarification,
        draft,
        created_at=task.created_at,
        now=now,
        response_path=files.response_path(root, task.id),
    )
    content = encoded_checkpoint(whole)
    controller.documents.keep(task.id, CHECKPOINT, content)
    files.write_checkpoint(root, task.id, content)


def recover(controller: Controller, root: str) -> list[Task]:
    """Settle what dead supervisors left, as they would have done."""
    settled = controller.runs.recover()
    for task in settled:
        close_run(controller, root, task)
    return settled


def close_run(controller: Controller, root: str, task: Task) -> None:
    """Do what the end of a run asks for.

    Say that it waits for a clarification, or take away what an ended task left.
    """
    if not files.is_used(root):
        return
    if task.state in ENDED:
        files.remove(
            *(
                kind(root, task.id)
                for kind in (files.needed_path, files.response_path, files.refused_path)
            )
        )
    elif task.state is TaskState.WAITING:
        _announce(controller, task)


def forget(root: str, task_id: str) -> None:
    """Take away every file of a task's clarifications."""
    files.remove(*files.all_paths(root, task_id))


def _announce(controller: Controller, task: Task) -> None:
    with controller.store.read() as view:
        clarification = clarification_of(view, task.id)
        waits = clarification is not None and any(
            view.ask(ask_id).is_open for ask_id in clarification.asks
        )
    if clarification and waits:
        log.say(log.TRACKED.format(agent=task.id))
        log.say(log.QUESTION)
        from adjourn.core.text.redact import Redactor  # seldom: most ask by other ways

        for line in formatted_questions(clarification.request.questions):
            log.say(Redactor().text(line))


# --- answers go out with the next run -------------------------------------------------------------


def prompt_of(controller: Controller, task_id: str) -> str | None:
    """Return what an agent is told when it goes on, once its clarification is answered."""
    answers = controller.asks.answers(task_id)
    if answers is None:
        return None
    kept = controller.documents.read(task_id, CHECKPOINT)
    try:
        checkpoint = read_checkpoint(kept) if kept else Checkpoint(agent_id=task_id)
    except msgspec.DecodeError:
        checkpoint = Checkpoint(agent_id=task_id)
    return resume_prompt(checkpoint, answers)


def prepare_run(controller: Controller, root: str, run: Run, *, place: str) -> dict[str, str]:
    """Put the answers where a run finds them, and return what to add to its environment."""
    if not files.is_used(root):
        return {}
    if run.resumed_from is None:
        files.remove(*files.all_paths(root, run.task_id))  # a run from nothing begins with nothing
        return {}
    answers = controller.asks.answers(run.task_id)
    prompt = prompt_of(controller, run.task_id)
    if answers is None or prompt is None:
        return {}
    paths = {
        "ADJOURN_ANSWERS": os.path.join(place, "answers.json"),
        "ADJOURN_RESUME_PROMPT": os.path.join(place, "prompt.md"),
    }
    write_whole(
        paths["ADJOURN_ANSWERS"],
        msgspec.json.format(msgspec.json.encode(answers), indent=2) + b"\n",
    )
    write_whole(paths["ADJOURN_RESUME_PROMPT"], prompt.encode())
    _write_response(controller, root, run.task_id, answers, at=run.created_at)
    log.say(log.RESUMING.format(agent=run.task_id))
    return paths


def prepare_feedback(controller: Controller, run: Run, *, place: str) -> dict[str, str]:
    """Put what a reviewer wants changed where a run finds it, and return what to add to its environment."""
    feedback = controller.asks.feedback(run)
    if not feedback:
        return {}
    path = os.path.join(place, "feedback.md")
    write_whole(path, feedback[-1].encode() + b"\n")
    return {"ADJOURN_FEEDBACK": path}


def announce_resumed(controller: Controller, root: str, run: Run) -> None:
    """Say that a run has begun that follows a clarification."""
    if run.resumed_from and files.is_used(root) and controller.asks.answers(run.task_id):
        log.say(log.RESUMED.format(agent=run.task_id))


def _write_response(
    controller: Controller, root: str, task_id: str, answers: dict[str, str], *, at: int
) -> None:
    """Write down answers that came another way, for an agent that reads files."""
    if controller.documents.read(task_id, RESPONSE) is not None and os.path.lexists(
        files.response_path(root, task_id)
    ):
        return
    content = files.write_response(root, task_id, answers, at=at)
    controller.documents.keep(task_id, RESPONSE, sha256(content))
    log.say(log.WRITTEN)
