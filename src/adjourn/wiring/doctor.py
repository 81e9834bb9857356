"""Checks the installation, the user's files and the store, and suggests fixes; changes nothing."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal, UncertainAsk
from adjourn.core.call import require_readable
from adjourn.core.errors import AdjournError, NotAllowed, StoreRefused, UnreadableRow
from adjourn.core.kept_documents import BATCH, BEGAN, CHANGES, CLARIFICATION, TaskDocument
from adjourn.core.states import UNFINISHED, TaskState
from adjourn.core.text.render import command_line
from adjourn.ports.runner import RunnerKind
from adjourn.ports.store import Store, View
from adjourn.process.ancestry import enclosing_run
from adjourn.process.cgroup import usable_folder
from adjourn.runners import RunnerNames, find_kind
from adjourn.settings.config import read_config
from adjourn.settings.find_store import ignored_above
from adjourn.settings.policies import FilePolicies, origins
from adjourn.settings.policy_text import rules_path
from adjourn.settings.principals import principals, webhooks
from adjourn.stores.sqlite import directory
from adjourn.stores.sqlite.queue_holder import LONG, held_for, holder_of
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.system.files import LOCK, is_lock_held, open_regular, run_directory, run_names
from adjourn.wiring import living
from adjourn.wiring.authority import require_keygen, require_outside
from adjourn.wiring.controller import open_controller
from adjourn.wiring.notifications import configured
from adjourn.wiring.ownership import deleted_stores

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MANY = 1_000
_FEW = 5
_NO_MEND = (
    "restore a backup of the store, or end its task: adjourn cancel ID; "
    "until then all else goes on without it"
)
_DOCUMENTS: tuple[TaskDocument[Any], ...] = (CLARIFICATION, BATCH, BEGAN, CHANGES)
_FIX_IT = "fix this, then run `adjourn doctor` again"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check: whether all is fine, what was found, and what helps if it is not."""

    check: str
    fine: bool
    says: str
    remedy: str | None = None


Findings = Iterator[CheckResult]


def examine(root: str, *, inside_run: str | None) -> list[CheckResult]:
    """Run all checks. A check that cannot be made is a finding, too."""
    found: list[CheckResult] = []
    for name, check in _CHECKS.items():
        found += _findings(name, partial(check, root))
    found += _findings("run", partial(_inside, inside_run))
    if not os.path.lexists(root):
        return [*found, _fine("store", f"no store at {root} yet; `adjourn run` creates one")]
    for name, check in _STORE_CHECKS.items():
        found += _findings(name, partial(check, root))
    return found


def _findings(name: str, check: Callable[[], Findings]) -> list[CheckResult]:
    found: list[CheckResult] = []
    try:
        found.extend(check())
    except AdjournError as error:
        found.append(_bad(name, error.sentence, error.way_out or _FIX_IT))
    except OSError as error:
        where = error.filename or f"the {name}"
        found.append(_bad(name, f"{where}: {error.strerror}", _FIX_IT))
    return found


def _fine(check: str, says: str) -> CheckResult:
    return CheckResult(check=check, fine=True, says=says)


def _bad(check: str, says: str, remedy: str) -> CheckResult:
    return CheckResult(check=check, fine=False, says=says, remedy=remedy)


# --- around the store -----------------------------------------------------------------------------


def _platform(_: str) -> Findings:
    if sys.platform == "linux":
        yield _fine("platform", f"Linux, Python {sys.version.split()[0]}")
    else:
        yield _bad(
            "platform",
            f"{sys.platform} has no pidfds and no subreapers: what a run leaves may live on",
            "use Linux",
        )


def _control_groups(_: str) -> Findings:
    """Say whether a run gets a control group, which nothing of it can leave."""
    if folder := usable_folder():
        yield _fine("cgroups", f"each run gets a control group below {folder}")
        return
    yield _fine(
        "cgroups",
        "no control groups can be made here: if a shim and its fork server are both killed, "
        "a daemon of their run that cleared its environment may live on",
    )


def _config(_: str) -> Findings:
    config = read_config()
    if not os.path.lexists(config.path):
        yield _fine("config", f"no config at {config.path}: nobody is notified; only you decide")
        return
    names = [table.name for table in principals(config)]
    names += [f"webhook:{table.name}" for table in webhooks(config)]
    told = ", ".join(names) or "nobody"
    yield _fine("config", f"{config.path} names {told} beside the owner of a store")
    yield from _writable("config", config.path)


def _writable(check: str, path: str) -> Findings:
    for each in (path, os.path.dirname(path)):
        if os.lstat(each).st_mode & _OTHERS_WRITE:
            yield _bad(check, f"others can write {each}", command_line(["chmod", "go-w", each]))


def _signers(_: str) -> Findings:
    path = read_config().file("allowed_signers")
    if not os.path.lexists(path):
        yield _fine("signers", f"no signature counts: {path} is missing")
        return
    require_keygen()
    try:
        with open(
            open_regular(path, follow_links=True), encoding="utf-8", errors="replace"
        ) as file:
            names = [line.split()[0] for line in file if line.strip() and not line.startswith("#")]
    except OSError as error:
        yield _bad("signers", f"{path} cannot be read: {error.strerror}", f"put a file at {path}")
        return
    told = ", ".join(names[:_FEW]) or "nobody"
    yield _fine("signers", f"{path} names {told}{' and more' if len(names) > _FEW else ''}")
    yield from _writable("signers", path)
    if os.access(path, os.W_OK) or os.access(os.path.dirname(path), os.W_OK):
        who = f"whatever runs as uid {os.geteuid()}"
        says = f"{who} can write {path}, and so name a signer of its own"
        yield _bad("signers", says, "adjourn run -- sudo -u AGENT COMMAND")


def _notifiers(_: str) -> Findings:
    names = [each.name for each in configured()]
    yield _fine("notifiers", ", ".join(names) or "none are configured")


def _ignored(root: str) -> Findings:
    """Name the stores above that are not used: somebody else may have put them there."""
    for path, reason in ignored_above(os.getcwd()):
        if path != root:
            yield _fine("ignored", f"{path} is no store or policy of this project: {reason}")


def _deleted_stores(_: str) -> Findings:
    """Say that something is kept of stores that are gone.

    Each has a secret in the user's state directory.
    """
    if stores := deleted_stores():
        noun = "store that is" if len(stores) == 1 else "stores that are"
        says = f"the state directory keeps secrets of {len(stores):,} {noun} gone"
        says += f", such as {stores[0].path}"
        yield _fine("deleted", f"{says}; `adjourn store forget` lists and removes them")


def _inside(run: str | None) -> Findings:
    if run:
        yield _bad(
            "run",
            f"this is inside the run {run}: nothing can be decided from here",
            "look from a terminal of your own",
        )


def _agents(_: str) -> Findings:
    """Say of each runner that starts a program what the installed one can do."""
    for name in RunnerNames():
        if find_kind(name).doctor:
            yield from _findings(name, partial(_agent, find_kind(name)))


def _agent(kind: RunnerKind) -> Findings:
    says = kind.diagnose(os.environ, workspace=os.getcwd())
    absent = f"not installed (only needed for `--runner {kind.name}`)"
    yield _fine(kind.name, says or absent)


_CHECKS = {
    "platform": _platform,
    "cgroups": _control_groups,
    "config": _config,
    "signers": _signers,
    "notifiers": _notifiers,
    "ignored": _ignored,
    "deleted": _deleted_stores,
    "runners": _agents,
}


# --- the store ------------------------------------------------------------------------------------


def _permissions(root: str) -> Findings:
    found = os.lstat(root)
    kind = directory.filesystem_kind(found.st_dev)
    yield _fine("filesystem", f"{root} is on {kind or 'a filesystem whose kind is unknown'}")
    paths = [root, *(entry.path for entry in os.scandir(root) if entry.name not in _SHOWN)]
    open_to_others = [path for path in paths if os.lstat(path).st_mode & _OTHERS]
    for path in open_to_others[:_FEW]:
        yield _bad("permissions", f"others can use {path}", command_line(["chmod", "go-rwx", path]))
    if not open_to_others:
        yield _fine("permissions", f"only uid {found.st_uid} can use {root}")


def _database(root: str) -> Findings:
    # psycopg is an optional package
    from adjourn.wiring.shared import described, described_rights, is_read_only

    if is_read_only(root):
        sentence = f"{described(root)} is read-only: nothing can be started or decided there"
        yield _bad("database", sentence, "name the primary server, or wait until it is writable")
    else:
        yield _fine("database", f"{described(root)} can be used")
    yield _fine("level", described_rights(root))


def _ownership(store: Store, check: str, says: str) -> Findings:
    try:
        store.require_ours()
    except StoreRefused as error:
        yield _bad(check, error.sentence, error.way_out)
    else:
        yield _fine(check, says)


_SHOWN = frozenset({".gitignore", "policy.toml", "supervision.yaml"})


def _in_the_store(root: str) -> Findings:
    controller = open_controller(root)
    store = controller.store
    try:
        if isinstance(store, SqliteStore):
            yield from _sqlite(store)
            yield from _queue(root)
            says = (
                "the store is bound to this machine and user, and has all that was seen of it here"
            )
            yield from _ownership(store, "ownership", says)
            who = f"whatever runs as uid {os.stat(root).st_uid}, agents too, could decide"
            yield _fine(
                "level",
                f"L0: {who}; a signed approval is worth more: adjourn approve ASK --sign KEY",
            )
            yield from _place(root, store)
        else:
            yield from _database(root)
            says = "the database has all that this machine has seen of it"
            yield from _ownership(store, "past", says)
            with closing(store.listen()) as listener:
                if listener.trouble:
                    says = "decisions wake nobody here; workers check for them instead"
                    remedy = "name the server itself in ADJOURN_LISTEN, or off"
                    yield _bad("wake-ups", f"{says}: {listener.trouble}", remedy)
        yield from _leftovers(root, controller)
        yield from _waiting(root, controller)
        yield from _outboxes(controller)
        yield from _unreadable(controller)
    finally:
        store.close()


def _place(root: str, store: SqliteStore) -> Findings:
    """Say that nothing can be decided from here just now.

    That it is inside a run is a finding of its own.
    """
    if enclosing_run():
        return
    person = Principal(name=f"uid:{os.getuid()}")
    try:
        with store.read() as view:
            require_outside(root, view, person, "a decision from here")
    except NotAllowed as error:
        yield _bad("place", error.sentence, error.way_out or "adjourn tasks")


def _sqlite(store: SqliteStore) -> Findings:
    about = store.about()
    says = f"SQLite {about.version}, journal {about.journal}, synchronous {about.synchronous}"
    remedy = "restore a backup of adjourn.db"
    if about.journal != "wal" or about.synchronous != "FULL":
        yield _bad("sqlite", f"{says}: it should be wal and FULL", remedy)
    elif about.damage:
        yield _bad("sqlite", f"the database is damaged: {about.damage}", remedy)
    else:
        yield _fine("sqlite", says)


def _queue(root: str) -> Findings:
    """Name a process that keeps all other writers waiting.

    One that is stopped will do so until somebody wakes it.
    """
    descriptor = os.open(os.path.join(root, directory.LOCK), os.O_RDONLY | os.O_CLOEXEC)
    try:
        holder = holder_of(descriptor)
        if holder and not holder.is_stopped:
            holder = held_for(descriptor, LONG)
        if holder:
            state = "and is stopped" if holder.is_stopped else f"for {LONG:.0f} s or longer"
            says = f"process {holder.pid} ({holder.name}) holds the store {state}"
            yield _bad("queue", f"{says}: all other writers wait for it", holder.remedy)
    finally:
        os.close(descriptor)


def _policy(root: str) -> Findings:
    places = [*(origin.path for origin in origins(root, os.getcwd())), rules_path()]
    found = [path for path in places if os.path.lexists(path)]
    FilePolicies(root).current(os.getcwd())
    none = "no policy: every call needs an approval"
    yield _fine("policy", f"from {', '.join(found)}" if found else none)


def _leftovers(root: str, controller: Controller) -> Findings:
    orphans = controller.runs.orphans()
    for run in orphans[:_FEW]:
        says = f"run {run.id} has no supervisor any more"
        yield _bad("runs", says, f"adjourn show {run.task_id}")

    with controller.store.read() as view:
        running = {f"{task.id}.{task.runs}" for task in view.running()}
    locks = {name: os.path.join(run_directory(root, name), LOCK) for name in run_names(root)}
    held = {name for name, path in locks.items() if is_lock_held(path)}
    for name in sorted(held - running)[:_FEW]:
        says = f"a shim of run {name} lives, and the run has ended"
        yield _bad("shims", says, f"adjourn show {name.partition('.')[0]}")

    supervisors = os.path.join(root, "supervisors")
    names = os.listdir(supervisors) if os.path.isdir(supervisors) else []
    dead = [name for name in names if not is_lock_held(os.path.join(supervisors, name))]
    if not orphans and held <= running:
        gone = f"{len(dead)} locks of supervisors that are gone"
        yield _fine("runs", f"{len(running)} under way, none left over; {gone}")


def _waiting(root: str, controller: Controller) -> Findings:
    with controller.store.read() as view:
        queued = view.tasks(states=(TaskState.QUEUED,), limit=_MANY)
        uncertain = [ask for ask in view.open_asks(limit=_MANY) if isinstance(ask, UncertainAsk)]
    pools = {about.pool for about in living(root).values() if about.pool}
    alive = f"workers of {', '.join(sorted(pools))} are alive"
    yield _fine("worker", alive if pools else "none is alive; `resume` does without")
    stuck = [task for task in queued if task.spec.pool not in pools]
    if stuck:
        says = f"{len(stuck)} queued, and no worker to start them"
        yield _bad("queue", says, f"adjourn resume {stuck[0].id}")
    for ask in uncertain[:_FEW]:
        call = f"{ask.task_id}.{ask.tool_call_id}"
        remedy = f"adjourn show {ask.task_id}"
        yield _bad("uncertain", f"nobody knows whether {call} ran", remedy)


def _outboxes(controller: Controller) -> Findings:
    for each in configured():
        with controller.store.read() as view:
            box = view.outbox(each.name)
        if box and (box.last_error or box.count_given_up):
            count = len(box.parked) + box.count_given_up
            why = box.last_error or "given up"
            says = f"{count} events were not delivered to {each.name}: {why}"
            yield _bad("notifiers", says, "adjourn notify --flush")


def _read_calls(view: View, task_id: str) -> None:
    for call in view.calls(task_id):
        require_readable(call)


def _try(view: View, read: Callable[[], object]) -> None:
    try:
        read()
    except UnreadableRow as error:
        error.note_in(view.unreadable)


def _unreadable(controller: Controller) -> Findings:
    """Name what cannot be read: of the newest tasks, and of all that have not ended."""
    with controller.store.read() as view:
        tasks = {task.id: task for task in view.tasks(states=UNFINISHED, limit=-1)}
        tasks |= {task.id: task for task in view.tasks(limit=_MANY)}
        for name in tasks:
            for read in (view.runs, view.asks, view.events, partial(_read_calls, view)):
                _try(view, partial(read, name))
            for document in _DOCUMENTS:
                _try(view, partial(document.read, view, name))
        for notifier in configured():
            view.outbox(notifier.name)
        found = list(view.unreadable.values())
    for each in found[:_FEW]:
        yield _bad("rows", each.sentence, _NO_MEND)
    if not found:
        yield _fine("rows", f"what is kept of the newest {len(tasks):,} tasks can be read")


_STORE_CHECKS = {"permissions": _permissions, "policy": _policy, "store": _in_the_store}
