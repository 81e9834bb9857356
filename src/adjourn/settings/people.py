"""Reads the people and the teams of the user's config: a project names them, and adds none."""

import re
from typing import Any, TypeVar

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.people import FINGERPRINT, Person, Team
from adjourn.ports.notifier import BadTable, read_keys
from adjourn.settings.config import Config, read_config
from adjourn.settings.notify import approvers_in

Table = TypeVar("Table", bound=msgspec.Struct)
_HOW = 'name = "anna" and principals = ["uid:1001"] in a [[person]] of config.toml'
# Lower case and ASCII, so that no two names look alike
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FINGERPRINT = re.compile(r"key:SHA256:[A-Za-z0-9+/]{43}")
_UID = re.compile(r"uid:(0|[1-9][0-9]{0,9})")
_OTHER = re.compile(r"(key|db|webhook|web|telegram|slack|token|passkey):[!-~][ -~]{0,254}")


class PersonTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who may be named in a rule."""

    name: str
    principals: tuple[str, ...]
    notify: tuple[str, ...] = ()


class TeamTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """People under one name."""

    name: str
    people: tuple[str, ...]


PERSON_KEYS = {
    "name": "What rules call this person: lower-case letters `a` to `z`, digits, `.`, `_` and `-`.",
    "principals": (
        "Every way in that is this person: `uid:1001`, `key:anna` as the allowed signers call a"
        " key, `key:SHA256:...` for a key by its fingerprint, `db:anna` for a login of a shared"
        " store, `webhook:NAME`; also `web:`, `telegram:`, `token:` and `passkey:` names. A"
        " principal is one person's only."
    ),
    "notify": "Names of `[[notify]]` tables that reach this person, for `escalate_to`.",
}
TEAM_KEYS = {
    "name": "What rules call it, as `team:NAME`: written as the name of a person is.",
    "people": "The names of its people.",
}
"""What each key means, for the reference."""


class People(msgspec.Struct, frozen=True, kw_only=True):
    """The people and teams of a config, and by which notifiers each is reached."""

    people: tuple[Person, ...] = ()
    teams: tuple[Team, ...] = ()
    notifiers: dict[str, tuple[str, ...]] = {}  # by the person's name

    def reached_by(self, notifier: str) -> frozenset[str]:
        """Return the names of the people and teams that a notifier reaches."""
        people = {name for name, notifiers in self.notifiers.items() if notifier in notifiers}
        teams = {f"team:{team.name}" for team in self.teams if people.intersection(team.people)}
        return frozenset(people | teams)


def read_people(config: Config | None = None) -> People:
    """Return the people of a config, the user's own unless it is given.

    What is wrong with a table is raised with its file, number and key.
    """
    config = read_config() if config is None else config
    people: list[Person] = []
    notifiers: dict[str, tuple[str, ...]] = {}
    owners: dict[str, str] = {}
    pressing = approvers_in(config)
    for number, content in enumerate(config.tables("person"), start=1):
        table = _read(config, "person", number, content, PersonTable)
        wrong = _wrong_name(table.name, [person.name for person in people])
        for principal in table.principals:
            if not _is_principal(principal):
                wrong = wrong or (
                    f"`principals`: {principal!r} is not a principal; write `uid:1001`, `key:NAME`,"
                    f" `{FINGERPRINT}...` or `db:LOGIN`"
                )
            else:
                # Two spellings of one login may be one person, so they are never two
                key = principal if principal.startswith(FINGERPRINT) else principal.lower()
                owner = owners.setdefault(key, table.name)
                if owner != table.name:
                    wrong = wrong or f"`principals`: {principal} is {owner} already"
        chats = tuple(each for each, name in pressing.items() if name == table.name)
        for principal in chats:
            owner = owners.setdefault(principal.lower(), table.name)
            if owner != table.name:
                wrong = wrong or f"`approvers` of a [[notify]]: {principal} is {owner} already"
        if not table.principals and not chats:
            wrong = wrong or "`principals` is empty: nothing would ever be this person"
        if wrong:
            raise _wrong(config, "person", number, wrong)
        people.append(Person(table.name, tuple(sorted({*table.principals, *chats}))))
        notifiers[table.name] = table.notify

    teams: list[Team] = []
    for number, content in enumerate(config.tables("team"), start=1):
        team = _read(config, "team", number, content, TeamTable)
        wrong = _wrong_name(team.name, [each.name for each in teams])
        unknown = [name for name in team.people if name not in notifiers]
        if unknown:
            wrong = wrong or f"`people`: no [[person]] is called {unknown[0]!r}"
        if wrong:
            raise _wrong(config, "team", number, wrong)
        teams.append(Team(team.name, tuple(sorted(set(team.people)))))
    return People(people=tuple(people), teams=tuple(teams), notifiers=notifiers)


def _is_principal(text: str) -> bool:
    if text.startswith(FINGERPRINT):
        return bool(_FINGERPRINT.fullmatch(text))
    return bool(_UID.fullmatch(text) or _OTHER.fullmatch(text))


def _wrong_name(name: str, others: list[str]) -> str:
    if not _NAME.fullmatch(name):
        return "`name` must have lower-case letters a to z, digits, `.`, `_` and `-`"
    return f"`name`: another is called {name} already" if name in others else ""


def _read(config: Config, key: str, number: int, content: Any, kind: type[Table]) -> Table:
    try:
        return read_keys(content, kind)
    except BadTable as error:
        raise _wrong(config, key, number, str(error)) from error


def _wrong(config: Config, key: str, number: int, what: str) -> Misuse:
    return Misuse(f"{config.path}: [[{key}]] number {number}: {what}", way_out=_HOW)
