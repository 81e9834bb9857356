"""Reads plans from their files, and makes of each item the task that it would begin as."""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256

import msgspec

from adjourn.core.errors import BadPlan, Misuse, NotFound, WorkspaceBusy
from adjourn.core.plan.plan import Item, Plan
from adjourn.core.plan.plan_file import PlanContent, read_plan
from adjourn.core.task import DEFAULT_GRACE, Milliseconds, Spec
from adjourn.core.text.render import visible
from adjourn.core.text.when import stamp
from adjourn.runners import find_kind
from adjourn.settings.config import exit_codes_setting, wants_pauses
from adjourn.system.files import hold_lock_if_free, private_directory, write_all
from adjourn.system.machine import now
from adjourn.wiring.runners import RUNNERS, Work, command_work, prompt_work

_LARGEST = 1024 * 1024
_TOLD = 5
_HELP = "adjourn execute --help"


def open_plan(path: str) -> Plan:
    """Return the plan in a file, or raise BadPlan with the lines of what is wrong.

    Its absolute path is what it is known by.
    """
    content = read_plan(_text(path), source=visible(path), runners=RUNNERS)
    if content.problems:
        raise BadPlan(_told(content), way_out=_HELP)
    whole = os.path.realpath(path)
    workspace = os.path.realpath(
        os.path.join(os.path.dirname(whole), os.path.expanduser(content.workspace))
    )
    if not os.path.isdir(workspace):
        raise BadPlan(
            f"{visible(path)}: its workspace {visible(workspace)} is not a directory", way_out=_HELP
        )
    return Plan(path=_utf8(whole), workspace=workspace, items=content.items)


def _text(path: str) -> str:
    try:
        if not os.path.isfile(path) and os.path.exists(path):
            raise Misuse(
                f"{visible(path)} is not a plain file, and so no plan that could be found again",
                way_out=_HELP,
            )
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise _no_plan(path) from error
    except OSError as error:
        raise Misuse(f"{visible(path)}: {error.strerror}", way_out=_HELP) from error
    if len(content) > _LARGEST:
        raise BadPlan(f"{visible(path)}: it has more than {_LARGEST:,} bytes", way_out=_HELP)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadPlan(f"{visible(path)}:{line}: it is not UTF-8", way_out=_HELP) from error


def _no_plan(path: str) -> NotFound:
    """Say that there is no such plan, and name those that are in its place."""
    place = os.path.dirname(path)
    others = [visible(os.path.join(place, name)) for name in sorted(_plans_in(place or "."))]
    if not others:
        return NotFound(f"there is no plan {visible(path)}", way_out="adjourn execute --help")
    there = f"there is {', '.join(others[:_TOLD])}"
    return NotFound(
        f"there is no plan {visible(path)}, but {there}", way_out=f"adjourn plan show {others[0]}"
    )


def _plans_in(place: str) -> Iterator[str]:
    with suppress(OSError):
        yield from (entry.name for entry in os.scandir(place) if _looks_like_a_plan(entry))


def _looks_like_a_plan(entry: os.DirEntry[str]) -> bool:
    if not (entry.name.endswith(".toml") and entry.is_file()):
        return False
    with open(entry.path, "rb") as file:
        return b"\n[[task]]" in b"\n" + file.read(_LARGEST)


def _utf8(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise Misuse(
            f"the path of a plan must be UTF-8: {visible(path)}", way_out="give it another name"
        ) from None
    return path


def _told(content: PlanContent) -> str:
    told = [str(problem) for problem in content.problems[:_TOLD]]
    rest = len(content.problems) - len(told)
    return "; ".join([*told, f"and {rest} more"] if rest else told)


def specs_of(
    plan: Plan, *, review: bool = False, parent_run: str | None = None
) -> Mapping[str, Spec]:
    """Return what each item of a plan would begin as now."""
    return {item.id: _spec(plan, item, review=review, parent_run=parent_run) for item in plan.items}


def is_gated(item: Item) -> bool:
    """Say whether an item asks a person first: as the plan, the user or its runner has it."""
    if item.pause_on_approval is not None:
        return item.pause_on_approval
    return wants_pauses() or find_kind(item.runner).is_gated_by_default


def _spec(plan: Plan, item: Item, *, review: bool, parent_run: str | None) -> Spec:
    return Spec(
        **_work(plan, item),
        workspace=plan.workspace,
        pause_on_approval=is_gated(item),
        asks_by_exit_code=exit_codes_setting() == "ask",
        parent_run=parent_run,
        plan=plan.path,
        item=item.id,
        review=item.review or review,
        grace=DEFAULT_GRACE if item.grace is None else item.grace,
    )


def _work(plan: Plan, item: Item) -> Work:
    """Return what an item has to do.

    What its runner does not take is told with the line of the task.
    """
    if item.prompt is None:
        return command_work(item.command)
    try:
        return prompt_work(
            item.runner, item.prompt, [f"{key}={value}" for key, value in item.options.items()]
        )
    except Misuse as error:
        raise BadPlan(
            f"{visible(plan.path)}:{item.line}: {error.sentence}", way_out=error.way_out
        ) from error
    except ModuleNotFoundError as error:
        sentence = (
            f"{visible(plan.path)}:{item.line}: the runner `{item.runner}` is not installed here"
        )
        raise BadPlan(sentence, way_out="adjourn doctor") from error


class Executor(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that executes a plan writes about itself into its lock file."""

    pid: int
    plan: str
    since: Milliseconds


@contextmanager
def executing(root: str, plan: Plan) -> Generator[None, None, None]:
    """Be the only one who executes a plan in its workspace, or raise WorkspaceBusy."""
    folder = private_directory(os.path.join(root, "plans"))
    path = os.path.join(folder, f"{sha256(os.fsencode(plan.workspace)).hexdigest()[:32]}.lock")
    held = hold_lock_if_free(path)
    if held is None:
        who = "somebody executes a plan"
        with suppress(FileNotFoundError, msgspec.DecodeError), open(path, "rb") as file:
            other = msgspec.json.decode(file.read(), type=Executor)  # if it is written yet
            who = f"process {other.pid} executes {visible(other.plan)} since {stamp(other.since)}"
        sentence = f"{who} in {visible(plan.workspace)}: one at a time"
        raise WorkspaceBusy(sentence, way_out="adjourn tasks --state running")
    try:
        os.ftruncate(held.fileno(), 0)
        executor = Executor(pid=os.getpid(), plan=plan.path, since=now())
        write_all(held.fileno(), msgspec.json.encode(executor))
        yield
    finally:
        held.close()
