"""The people of the user's config: two of them are never one."""

import pytest

from adjourn.core.errors import Misuse
from adjourn.core.people import Person, Team
from adjourn.settings.config import Config
from adjourn.settings.people import read_people

ANNA = {"name": "anna", "principals": ["uid:1000", "key:anna"], "notify": ["pager"]}
BEN = {"name": "ben", "principals": ["key:ben"]}


def config(*people: object, teams: tuple[object, ...] = ()) -> Config:
    content = {"person": [ANNA, BEN, *people], "team": [*teams]}
    return Config(path="config.toml", content=content)


def test_people_and_teams_are_read() -> None:
    found = read_people(config(teams=({"name": "ops", "people": ["ben", "anna"]},)))
    assert found.people[0] == Person("anna", ("key:anna", "uid:1000"))
    assert found.teams == (Team("ops", ("anna", "ben")),)
    assert found.reached_by("pager") == {"anna", "team:ops"}
    assert found.reached_by("mail") == frozenset()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"name": "Anna", "principals": ["key:x"]}, "`name` must have lower-case letters"),
        ({"name": "аnna", "principals": ["key:x"]}, "`name` must have lower-case letters"),  # noqa: RUF001 -- Cyrillic letters
        ({"name": "anna", "principals": ["key:x"]}, "another is called anna already"),
        ({"name": "eve", "principals": ["key:ben"]}, "key:ben is ben already"),
        ({"name": "eve", "principals": ["key:Ben"]}, "key:Ben is ben already"),
        ({"name": "eve", "principals": ["key:bеn"]}, "is not a principal"),  # noqa: RUF001 -- Cyrillic letters
        ({"name": "eve", "principals": ["uid:01000"]}, "is not a principal"),
        ({"name": "eve", "principals": ["uid:-1"]}, "is not a principal"),
        ({"name": "eve", "principals": ["agent:claude"]}, "is not a principal"),
        ({"name": "eve", "principals": ["key:SHA256:short"]}, "is not a principal"),
        ({"name": "eve", "principals": []}, "is empty"),
        ({"name": "eve"}, "principals"),
        ({"name": "eve", "principals": ["key:x"], "scopes": []}, "scopes"),
    ],
)
def test_a_config_in_which_two_people_may_be_one_is_refused(table: object, why: str) -> None:
    with pytest.raises(Misuse, match=r"\[\[person\]\] number 3") as refused:
        read_people(config(table))
    assert why in refused.value.sentence


def test_a_team_has_people_only() -> None:
    with pytest.raises(Misuse, match=r"no .*person.* is called 'carl'"):
        read_people(config(teams=({"name": "ops", "people": ["carl"]},)))
