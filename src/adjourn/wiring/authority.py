"""Puts together who may decide.

The owner of the store, whom the owner's config names, and whose signatures count.
"""

import os

import msgspec

from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import AGENT, ALL, NONE, TOKEN, Rights, Scope
from adjourn.core.errors import Misuse, NotAllowed
from adjourn.core.states import CallState
from adjourn.core.task import Run
from adjourn.ports.store import Change, View
from adjourn.process import supervisors
from adjourn.process.ancestry import (
    PLACES,
    Ancestor,
    AncestryUnreadable,
    Place,
    came_from_outside,
    difference,
    enclosing_shim,
    is_initial,
    known_places,
    mark_of_run,
    read_ancestors,
    read_place,
    with_place,
)
from adjourn.system.files import LOCK, RESULT, is_lock_held, run_directory, run_names
from adjourn.system.machine import now

_DECIDE_ELSEWHERE = (
    "decide from the terminal where you started the task, or sign the decision with --sign KEY"
)
_USERS = frozenset({"web", "passkey"})  # kinds of users who have logged in to the web


class FileAuthoriser:
    """Knows the owner by the store's directory, and everybody else by the owner's config."""

    def __init__(self, root: str) -> None:
        self._root = root

    def caller(self) -> str:
        """Return the user of this process."""
        return f"uid:{os.getuid()}"

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do."""
        owner = os.stat(self._root).st_uid
        if by.name == f"uid:{owner}":
            return Rights(scopes=ALL, is_only_user=True)
        if by.name == f"file:uid:{owner}":
            return Rights(scopes=frozenset({Scope.ANSWER}))  # files carry answers, never decisions
        # Most commands start without it (bench start)
        from adjourn.settings.config import read_config

        # Most commands start without it (bench start)
        from adjourn.settings.principals import agent_scopes, rights_in

        if by.kind == AGENT:
            # It has no more than the user or login through whose process it speaks
            user = self.rights(Principal(name=by.through)) if by.through else NONE
            return Rights(scopes=user.scopes & agent_scopes(read_config(owner), by))
        if by.kind == TOKEN:
            # Only the HTTP API has them (bench start)
            from adjourn.settings.api_tokens import rights_of_token

            known = rights_of_token(by.name.partition(":")[2], owner=owner, now=now())
            rights = known or rights_in(read_config(owner), by)
        elif by.kind in _USERS:
            # Only who decides in a browser needs it
            from adjourn.settings.principals import rights_of_user

            rights = rights_of_user(read_config(owner), by, owner=owner)
        else:
            rights = rights_in(read_config(owner), by)
        if by.through is None:
            return NONE if by.kind == TOKEN else rights
        # Who speaks through a process has no more than its user or login may; and through the
        # owner's own, nobody else can have started anything here, under whatever user id
        user = self.rights(Principal(name=by.through))
        scopes = rights.scopes & user.scopes
        return msgspec.structs.replace(rights, scopes=scopes, is_only_user=user.is_only_user)

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Refuse a decision from what is, or may be, part of a run of the store."""
        require_outside(self._root, view, by, verb)

    def note_place(self, tx: Change, by: Principal) -> None:
        """Remember that the store is used from here."""
        # While a run is alive nothing is noted: it could be the run that calls
        if not by.name.startswith("uid:") or by.inside_run or tx.running() or tx.unreadable:
            return
        place, places = place_if_any(), known_places(tx.shared_document(PLACES))
        if place and place not in places:
            tx.keep_shared_document(PLACES, with_place(places, place))


class FileSignatures:
    """Verifies with the allowed signers that the config of the store's owner names.

    A passkey's proof is verified with the public keys of the owner's users.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def signer(self, document: bytes, signature: str) -> str:
        """Return who signed these very bytes and still may sign, or raise NotAllowed."""
        # Only signed decisions need it (bench start)
        from adjourn.core.authority.signed import kind_of_proof
        from adjourn.signatures import SshSignatures

        if kind_of_proof(signature) == "passkey":
            # Only decisions of browsers need it
            from adjourn.wiring.passkey_users import passkey_signer

            return passkey_signer(document, signature, owner=os.stat(self._root).st_uid)
        try:
            allowed, revoked = self._files()
        except Misuse as error:
            raise NotAllowed(
                f"whose signatures count cannot be told: {error.sentence}", way_out=error.way_out
            ) from error
        return SshSignatures(allowed, revoked=revoked).signer(document, signature)

    def _files(self) -> tuple[str, str | None]:
        """Return the files that say whose signatures count, and whose no more.

        Who could write them could sign.
        """
        # Most commands start without it (bench start)
        from adjourn.settings.config import read_config, require_trust

        owner = os.stat(self._root).st_uid
        config = read_config(owner)
        allowed, revoked = config.file("allowed_signers"), config.file("revoked_signers")
        for path in filter(os.path.exists, (allowed, revoked)):
            require_trust(path, os.stat(path), owner=owner)
        is_needed = "revoked_signers" in config.content or os.path.lexists(revoked)
        return allowed, revoked if is_needed else None


def sign(document: bytes, *, key: str) -> str:
    """Return the signature of a document by a key of the person who is here."""
    # Only signed decisions need it (bench start)
    from adjourn import signatures

    return signatures.sign(document, key=key)


def require_keygen() -> None:
    """Refuse to go on where no signature can be made or verified."""
    # Only signed decisions need it (bench start)
    from adjourn import signatures

    signatures.require_program()


def require_outside(root: str, view: View, by: Principal, verb: str) -> None:
    """Refuse a decision on a store of one machine from what is, or may be, part of one of its runs.

    A response file tells who owns it and not which process reads it, so it is not looked at here:
    it never decides.
    """
    if by.name.startswith("file:"):
        return
    ancestors = _ancestors(verb)
    # What cannot be read may be a run that is alive
    running = view.current_runs()
    if not running and not view.unreadable:
        return
    if ancestors is None:
        raise _refused(verb, "the processes above this one cannot be read in /proc", running)
    for run in running:
        if _is_lost(root, view, run):
            raise NotAllowed(
                f"{verb} is refused: run {run.id} has just lost its shim, "
                "and this may be a part of it",
                way_out=f"adjourn show {run.task_id}, then run the command again",
            )
    if by.name.startswith("uid:"):
        _require_known_place(root, view, verb, ancestors, running)


def require_outside_here(root: str, by: Principal, verb: str) -> None:
    """Refuse a decision on a shared store from what is, or may be, part of a run of this machine.

    Who decides there is named by a login or a key, which may come from any container. So namespaces
    are not compared.
    """
    if not by.name.startswith("file:") and _ancestors(verb) is None and has_runs(root):
        raise NotAllowed(
            f"{verb} is refused: the processes above this one cannot be read in /proc, "
            "so it may be part of a run",
            way_out="decide from another machine, or from a terminal where /proc can be read",
        )


def place_if_any() -> Place | None:
    """Return where this process lives, or None where /proc does not say it."""
    try:
        return read_place()
    except AncestryUnreadable:
        return None


def _ancestors(verb: str) -> list[Ancestor] | None:
    """Return the processes above this one, or None if they cannot be read.

    Refuse what is known to be part of a run.
    """
    try:
        ancestors = read_ancestors()
    except AncestryUnreadable:
        ancestors = None
    if mark_of_run() or (ancestors and enclosing_shim(ancestors)):
        sentence = f"{verb} is refused inside a run: what runs under adjourn may ask, never decide"
        raise NotAllowed(sentence, way_out="decide from a terminal of your own")
    return ancestors


def _is_lost(root: str, view: View, run: Run) -> bool:
    """Return whether a shim of the run is gone without a result.

    Then what it started may be anywhere, and look like anybody. A shim that ends as it should kills
    all that it started before it writes its result.
    """
    places = [run.id] if run.shim else []
    calls = view.calls_in(run.task_id, CallState.EXECUTING)
    places += [call.place for call in calls if call.shim]
    folders = [run_directory(root, place) for place in places]
    return any(
        not is_lock_held(os.path.join(folder, LOCK))
        and not os.path.lexists(os.path.join(folder, RESULT))
        for folder in folders
    )


def _require_known_place(
    root: str, view: View, verb: str, ancestors: list[Ancestor], running: list[Run]
) -> None:
    """Refuse a local user outside of the places from which the store was used while nothing ran."""
    try:
        place = read_place()
    except AncestryUnreadable as error:
        raise _refused(verb, str(error), running) from error
    differs = difference(place, known_places(view.shared_document(PLACES)))
    if differs:
        why = f"{differs} is not one from which this store was used while nothing ran"
        raise _refused(verb, why, running)
    is_known = not view.unreadable and _all_run_in(root, place, running)
    if came_from_outside(ancestors) and not is_known:
        raise _refused(
            verb, "the process that started this one is outside of its pid namespace", running
        )


def _all_run_in(root: str, place: Place, running: list[Run]) -> bool:
    """Whether all runs are in this pid namespace.

    Then none of them can have entered it from outside.
    """
    if is_initial(place):
        return False
    for run in running:
        about = supervisors.about_of(root, run.supervisor)
        theirs = about.place if about else None
        if theirs is None or (theirs.pid_namespace, theirs.first_process) != (
            place.pid_namespace,
            place.first_process,
        ):
            return False
    return True


def has_runs(root: str) -> bool:
    """Return whether this machine may have a run of a store.

    A supervisor or a shim holds its lock.
    """
    if supervisors.living(root):
        return True
    return any(
        is_lock_held(os.path.join(run_directory(root, name), LOCK)) for name in run_names(root)
    )


def _refused(verb: str, why: str, running: list[Run]) -> NotAllowed:
    why = f"this process may be part of a run, for {why}"
    if not running:
        sentence = f"{verb} is refused while a task cannot be read: {why}"
        return NotAllowed(sentence, way_out=f"{_DECIDE_ELSEWHERE}; or first: adjourn doctor")
    task_id = running[0].task_id
    sentence = f"{verb} is refused while task {task_id} runs: {why}"
    return NotAllowed(sentence, way_out=f"{_DECIDE_ELSEWHERE}; or first: adjourn wait {task_id}")
