"""People, and the approvals that they gave: who counts, how many are needed, who is missing.

A principal is a way in: a user id, a key, a login. A person may have several, and counts once.
"""

from collections.abc import Iterable, Sequence

import msgspec

FINGERPRINT = "key:SHA256:"  # begins the name of a key by its fingerprint
MOST_APPROVALS = 20


class Person(msgspec.Struct, frozen=True, array_like=True):
    """Somebody who may approve, and the principals that are this person."""

    name: str
    principals: tuple[str, ...]


class Team(msgspec.Struct, frozen=True, array_like=True):
    """People under one name."""

    name: str
    people: tuple[str, ...]


class GivenApproval(msgspec.Struct, frozen=True, kw_only=True):
    """One of the approvals that an ask needs: for these bytes, and no others."""

    person: str
    by: str  # the principal, as the channel said
    at: int
    level: str
    digest: str


def find_person(people: Iterable[Person], names: Iterable[str]) -> str | None:
    """Return whom these principals belong to; None if that is nobody, or several people."""
    wanted = set(names)
    found = [person.name for person in people if wanted.intersection(person.principals)]
    return found[0] if len(found) == 1 else None


def resolve(
    names: Iterable[str], people: Sequence[Person], teams: Sequence[Team]
) -> tuple[Person, ...]:
    """Return the people that the names of a rule mean, `team:NAME` for all of a team.

    A name that nobody has means nobody.
    """
    wanted: set[str] = set()
    for name in names:
        if name.startswith("team:"):
            members = [team.people for team in teams if team.name == name.removeprefix("team:")]
            wanted.update(member for each in members for member in each)
        else:
            wanted.add(name)
    return tuple(sorted((each for each in people if each.name in wanted), key=lambda who: who.name))


def narrowed(
    one: tuple[Person, ...] | None, other: tuple[Person, ...] | None
) -> tuple[Person, ...] | None:
    """Return the people who are in both, each with the principals that both give them.

    None stands for everybody.
    """
    if one is None or other is None:
        return other if one is None else one
    others = {person.name: set(person.principals) for person in other}
    both = (
        Person(
            person.name,
            tuple(each for each in person.principals if each in others.get(person.name, ())),
        )
        for person in one
    )
    return tuple(person for person in both if person.principals)


def still_missing(
    needed: int, people: tuple[Person, ...], given: Sequence[GivenApproval]
) -> tuple[int, tuple[str, ...]]:
    """Return how many approvals are missing, and the names of those who may give them."""
    have = {each.person for each in given}
    return max(0, needed - len(have)), tuple(
        person.name for person in people if person.name not in have
    )


def missing_words(needed: int, people: tuple[Person, ...], given: Sequence[GivenApproval]) -> str:
    """Say who is still missing: `ben`, or `2 of ben, cleo, dan`."""
    missing, others = still_missing(needed, people, given)
    if missing > len(others):
        return f"{missing}, and only {len(others)} who may: {', '.join(others) or 'nobody'}"
    names = ", ".join(others)
    return names if missing == len(others) else f"{missing} of {names}"
