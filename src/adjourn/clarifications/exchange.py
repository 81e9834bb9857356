"""Reads responses from files, and writes requests, checkpoints, answers and feedback.

A response is taken once, and completely or not at all.
"""

import os
import time
from collections.abc import Callable
from hashlib import sha256

import msgspec

from adjourn.clarifications import log, protocol_files
from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.clarification import (
    Checkpoint,
    Clarification,
    Refusal,
    checkpoint_of,
    encoded_checkpoint,
    formatted_answers,
    formatted_questions,
    read_checkpoint,
    replies_to,
    resume_prompt,
)
from adjourn.core.errors import AdjournError, Conflict, Misuse, NotFound, StoreProblem
from adjourn.core.kept_documents import CHECKPOINT, CLARIFICATION, RESPONSE
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Run, Task
from adjourn.core.text.render import visible
from adjourn.system.files import has_clarifications, read_owned, write_whole
from adjourn.system.yaml import NotYet

Refuse = Callable[[Refusal], None]


# --- responses come in ----------------------------------------------------------------------------


def take_responses(
    controller: Controller, root: str, *, refuse: Refuse, patience: float = 0.0
) -> list[str]:
    """Give the answers in all response files to their asks; return the tasks that got theirs."""
    for task_id in protocol_files.tasks_with_other_response(root):
        _refuse_other_response(controller, root, task_id, refuse)
    return [
        task_id
        for task_id in protocol_files.tasks_with_response(root)
        if take_response(controller, root, task_id, refuse=refuse, patience=patience)
    ]


def take_response(
    controller: Controller, root: str, task_id: str, *, refuse: Refuse, patience: float
) -> bool:
    """Give the answers in a task's response file to its asks; return whether it got them now.

    One that is wrong is refused. So is one that is not complete, if nobody wrote to it for so many
    seconds; until then it is left for the next time.
    """
    digest = b""
    try:
        found = read_owned(
            protocol_files.response_path(root, task_id), largest=protocol_files.LARGEST
        )
        if found is None:
            return False
        digest = sha256(found.content).digest()
        with controller.store.read() as view:
            task = view.task(task_id)
            asks = view.asks(task_id)
            if RESPONSE.read(view, task_id) == digest:
                return False  # it was taken before
        if task.state in ENDED:
            raise Conflict(f"task {task_id} has {task.state}", way_out=f"adjourn show {task_id}")
        response = protocol_files.response_of(found.content, task_id=task_id)
        by = Principal(name=f"file:uid:{found.owner}")
        if not controller.asks.respond(task_id, replies_to(response, asks), digest=digest, by=by):
            return False
    except NotYet as reason:
        if _age(protocol_files.response_path(root, task_id)) < patience:
            log.say(f"the response for {visible(task_id)} is not whole yet: {reason}")
        else:
            why = f"it is not whole: {reason}"
            refuse(Refusal(task_id=task_id, digest=digest.hex(), why=why))
        return False
    except StoreProblem:
        raise
    except AdjournError as error:
        refuse(Refusal(task_id=task_id, digest=digest.hex(), why=error.why))
        return False
    protocol_files.remove(protocol_files.refused_path(root, task_id))
    log.say(log.READY.format(agent=task_id))
    return True


def _age(path: str) -> float:
    """Return how many seconds ago a file was written to."""
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _refuse_other_response(controller: Controller, root: str, task_id: str, refuse: Refuse) -> None:
    """Refuse a response that lies where only the checkpoint of its agent says."""
    path = protocol_files.read_other_response(root, task_id)
    try:
        with controller.store.read() as view:
            is_waiting = view.task(task_id).state is TaskState.WAITING
    except NotFound:
        is_waiting = False
    if path is None or not is_waiting or not os.path.lexists(path):
        return
    expected = protocol_files.response_path(root, task_id)
    why = f"its checkpoint names {visible(path)}, and adjourn reads {visible(expected)} only"
    refuse(Refusal(task_id=task_id, digest=sha256(os.fsencode(path)).hexdigest(), why=why))


def report_refusals(controller: Controller, root: str, say: Callable[[str], None]) -> Refuse:
    """Return a `refuse` that reports what waits for a better response each time it is asked.

    What nobody waits for is reported once.
    """

    def refuse(refusal: Refusal) -> None:
        is_new = protocol_files.write_refusal(root, refusal)
        try:
            with controller.store.read() as view:
                is_waiting = view.task(refusal.task_id).state is TaskState.WAITING
        except NotFound:
            is_waiting = False
        if is_new or is_waiting:
            say(refusal.sentence)

    return refuse


def report_each_once(root: str, say: Callable[[str], None]) -> Refuse:
    """Return a `refuse` that reports each refused response once, however often it is read."""
    reported: set[Refusal] = set()

    def refuse(refusal: Refusal) -> None:
        protocol_files.write_refusal(root, refusal)
        if refusal not in reported:
            reported.add(refusal)
            say(refusal.sentence)

    return refuse


def why_refused(root: str, task_id: str) -> str | None:
    """Return what is wrong with a task's response file, or None."""
    noted = protocol_files.read_refusal(root, task_id)
    try:
        found = read_owned(
            protocol_files.response_path(root, task_id), largest=protocol_files.LARGEST
        )
        if found is None:
            other = protocol_files.read_other_response(root, task_id)
            return noted.why if noted and other and os.path.lexists(other) else None
        if noted and noted.digest == sha256(found.content).hexdigest():
            return noted.why
        protocol_files.response_of(found.content, task_id=task_id)
    except NotYet as reason:
        return f"it is not whole yet: {reason}"
    except Misuse as error:
        return error.sentence
    return None


def clear_taken(controller: Controller, root: str, task_id: str) -> None:
    """Remove a response that was taken, so that it never answers the next request."""
    taken = controller.documents.read(task_id, RESPONSE)
    if taken is None:
        return
    if protocol_files.response_digest(root, task_id) == taken:
        protocol_files.remove(protocol_files.response_path(root, task_id))
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
    """Keep a checkpoint in the store, and write a copy where agents expect it."""
    checkpoint = checkpoint_of(
        clarification,
        draft,
        created_at=task.created_at,
        now=now,
        response_path=protocol_files.response_path(root, task.id),
    )
    content = encoded_checkpoint(checkpoint)
    controller.documents.keep(task.id, CHECKPOINT, content)
    protocol_files.write_checkpoint(root, task.id, content)


def recover(controller: Controller, root: str) -> list[Task]:
    """Settle what dead supervisors left, as they would have done."""
    settled = controller.runs.recover()
    for task in settled:
        close_run(controller, root, task)
    return settled


def close_run(controller: Controller, root: str, task: Task) -> None:
    """Remove the files of a task that has ended; report a clarification that waits for answers."""
    if not has_clarifications(root):
        return
    if task.state in ENDED:
        kinds = (
            protocol_files.needed_path,
            protocol_files.response_path,
            protocol_files.refused_path,
            protocol_files.other_response_path,
        )
        protocol_files.remove(*(path_of(root, task.id) for path_of in kinds))
        return
    if task.state is not TaskState.WAITING:
        return
    with controller.store.read() as view:
        clarification = CLARIFICATION.read(view, task.id)
        if clarification is None or not any(view.ask(ask).is_open for ask in clarification.asks):
            return
        checkpoint = CHECKPOINT.read(view, task.id)
    _note_other_response(root, task.id, checkpoint)
    # Most runs wait for no clarification, and the patterns of the redactor are slow to compile
    from adjourn.settings.config import open_redactor

    redactor = open_redactor()
    log.say(log.TRACKED.format(agent=task.id))
    log.say(log.QUESTION)
    for line in formatted_questions(clarification.request.questions):
        log.say(redactor.text(line))


def _note_other_response(root: str, task_id: str, checkpoint: bytes | None) -> None:
    """Remember where an agent expects its response, if that is not where adjourn reads it."""
    try:
        kept = read_checkpoint(checkpoint) if checkpoint else Checkpoint(agent_id=task_id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    named, ours = (
        kept.resume_instructions.read_clarification_from,
        protocol_files.response_path(root, task_id),
    )
    if named and os.path.realpath(named) != os.path.realpath(ours):
        protocol_files.write_other_response(root, task_id, named)
    else:
        protocol_files.remove(protocol_files.other_response_path(root, task_id))


# --- answers go out with the next run -------------------------------------------------------------


def prompt_of(controller: Controller, task_id: str) -> str | None:
    """Return the prompt with which an agent resumes, once its clarification is answered."""
    answers = controller.asks.answers(task_id)
    if answers is None:
        return None
    kept = controller.documents.read(task_id, CHECKPOINT)
    try:
        checkpoint = read_checkpoint(kept) if kept else Checkpoint(agent_id=task_id)
    except msgspec.DecodeError:
        checkpoint = Checkpoint(agent_id=task_id)
    return resume_prompt(checkpoint, formatted_answers(answers))


def prepare_run(controller: Controller, root: str, run: Run, *, place: str) -> dict[str, str]:
    """Write the answers into a run's directory; return what to add to its environment."""
    if not has_clarifications(root):
        return {}
    if run.resumed_from is None:
        protocol_files.remove_all(root, run.task_id)  # a run from nothing begins with nothing
        return {}
    answers = controller.asks.answers(run.task_id)
    prompt = prompt_of(controller, run.task_id)
    if answers is None or prompt is None:
        return {}
    answers_path = os.path.join(place, "answers.json")
    prompt_path = os.path.join(place, "prompt.md")
    write_whole(answers_path, msgspec.json.format(msgspec.json.encode(answers), indent=2) + b"\n")
    write_whole(prompt_path, prompt.encode())

    # An agent that reads files finds answers that came another way in a response file
    taken = controller.documents.read(run.task_id, RESPONSE)
    if taken is None or not os.path.lexists(protocol_files.response_path(root, run.task_id)):
        content = protocol_files.write_response(root, run.task_id, answers, at=run.created_at)
        controller.documents.keep(run.task_id, RESPONSE, sha256(content).digest())
        log.say(log.WRITTEN)
    log.say(log.RESUMING.format(agent=run.task_id))
    return {"ADJOURN_ANSWERS": answers_path, "ADJOURN_RESUME_PROMPT": prompt_path}


def prepare_feedback(controller: Controller, run: Run, *, place: str) -> dict[str, str]:
    """Write a reviewer's wishes into a run's directory; return what to add to its environment."""
    feedback = controller.asks.feedback(run)
    if not feedback:
        return {}
    path = os.path.join(place, "feedback.md")
    write_whole(path, feedback[-1].encode() + b"\n")
    return {"ADJOURN_FEEDBACK": path}


def announce_resumed(controller: Controller, root: str, run: Run) -> None:
    """Report that a run has begun that follows a clarification."""
    if run.resumed_from and has_clarifications(root) and controller.asks.answers(run.task_id):
        log.say(log.RESUMED.format(agent=run.task_id))
