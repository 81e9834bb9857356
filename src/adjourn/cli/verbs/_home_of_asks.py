"""Finds the store of the asks that a person names, among all stores of that user."""

from collections.abc import Sequence

from adjourn.cli.session import Session
from adjourn.controller.decisions import ENOUGH
from adjourn.core.errors import Ambiguous, Misuse
from adjourn.core.text.render import prose, visible
from adjourn.wiring import name_of_store, open_decisions
from adjourn.wiring.all_stores import read_each, registered_stores


def find_home(session: Session, texts: Sequence[str]) -> str | None:
    """Return the store that has all asks which these ids or beginnings of ids name.

    None means that no other store than the one from here has to be opened. A beginning counts over
    all stores: if several asks begin so, whatever store they are in, nothing is decided.
    """
    roots = all_roots(session)
    if not [root for root in roots if root != session.root]:
        return None

    def read(root: str) -> dict[str, list[str]]:
        decisions = open_decisions(root)
        with decisions.store.read() as view:
            found = {text: view.asks_like(text) for text in texts if len(text) >= ENOUGH}
        decisions.store.close()
        return found

    homes: dict[str, str] = {}  # by what was given
    matches: dict[str, dict[str, str]] = {text: {} for text in texts}  # the store of each ask
    for result in read_each(roots, read):
        if result.trouble:
            session.warn(f"adjourn: {prose(name_of_store(result.root))}: {prose(result.trouble)}")
        for text, asks in (result.found or {}).items():
            for ask in asks:
                matches[text].setdefault(ask, result.root)
    for text, known in matches.items():
        if text in known:
            homes[text] = known[text]
        elif len(known) > 1:
            named = ", ".join(f"{ask} in {name_of_store(root)}" for ask, root in known.items())
            raise Ambiguous(
                f"several asks begin with {visible(text)}: {named}",
                way_out="adjourn inbox --everywhere",
            )
        elif known:
            (homes[text],) = known.values()
    found = set(homes.values())
    if len(found) > 1:
        names = ", ".join(sorted(map(name_of_store, found)))
        raise Misuse(
            f"these asks are in several stores ({names}): all or none can be decided",
            way_out="decide the asks of one store at a time",
        )
    home = next(iter(found), None)
    return None if home == session.root else home


def all_roots(session: Session) -> list[str]:
    """Return all stores of this user, and the one from here if it is not among them."""
    own = [session.root] if session.has_store else []
    return list(dict.fromkeys([*own, *registered_stores()]))


def short_store_name(root: str) -> str:
    """Return what tells a store: the directory that it lies in, or the database."""
    name = name_of_store(root)
    return visible(name.removesuffix("/.adjourn"))
