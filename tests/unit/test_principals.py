"""Every kind of principal that a surface may bring: whether it is a person, and what it is worth."""

import pytest

from adjourn.core.ask import Approver, Principal, Terms
from adjourn.core.authority.scopes import (
    ALL,
    KINDS,
    NONE,
    Level,
    Rights,
    is_human,
    level_of,
    refuse_terms,
    refuse_without,
)
from adjourn.core.errors import NotAllowed

LISTED = Rights(is_person=True)
OTHER = "uid:7"  # who speaks for it, where the task was started by uid:1

# By hand, and not from KINDS: human, human if listed, level through another user and listed
EXPECTED = {
    "uid:2": (True, True, Level.L1),
    "db:anna": (True, True, Level.L0),  # another kind than the requester: may be the same person
    "key:anna": (True, True, Level.L2),
    "passkey:anna": (True, True, Level.L2),
    "web:anna": (True, True, Level.L1),
    "telegram:5": (False, True, Level.L1),
    "slack:U5": (False, True, Level.L1),
    "token:ci": (False, True, Level.L1),
    "link:mail": (False, True, Level.L0),
    "agent:claude": (False, False, Level.L0),
    "webhook:ci": (False, False, Level.L0),
    "file:uid:1": (False, False, Level.L0),
}


def test_the_table_has_every_kind() -> None:
    assert {name.partition(":")[0] for name in EXPECTED} == KINDS.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_each_kind_is_worth_what_its_channel_proves(name: str) -> None:
    human, human_if_listed, level = EXPECTED[name]
    by = Principal(name=name, through=OTHER)
    assert is_human(by) is human
    assert is_human(by, LISTED) is human_if_listed
    assert level_of(by, LISTED, requester="uid:1") is level
    inside = Principal(name=name, through=OTHER, inside_run="task.1")
    assert not is_human(inside, LISTED)


@pytest.mark.parametrize("name", ["web:anna", "telegram:5", "slack:U5", "token:ci"])
def test_what_comes_through_the_requesters_own_process_is_worth_no_more(name: str) -> None:
    for by in (Principal(name=name, through="uid:1"), Principal(name=name)):
        assert level_of(by, LISTED, requester="uid:1") is Level.L0
    also = Rights(is_person=True, also=("uid:1",))
    assert level_of(Principal(name=name, through=OTHER), also, requester="uid:1") is Level.L0
    unlisted = level_of(Principal(name=name, through=OTHER), NONE, requester="uid:1")
    assert unlisted is (Level.L1 if name.startswith("web:") else Level.L0)


@pytest.mark.parametrize("name", ["ghost:anna", "anna", "", "UID:0", "agent"])
def test_an_unknown_kind_is_denied_whatever_its_rights(name: str) -> None:
    by = Principal(name=name)
    assert is_human(by, LISTED) is False
    assert level_of(by, LISTED, requester="uid:1") is Level.L0
    if name != "agent":
        with pytest.raises(NotAllowed, match="nobody knows that kind"):
            refuse_without(ALL, by, "approve")


def test_no_agent_meets_terms_that_name_a_person() -> None:
    agent = Principal(name="agent:claude", through="uid:1")
    for terms in (Terms(approver=Approver.HUMAN), Terms(override=True), Terms(signed=True)):
        with pytest.raises(NotAllowed):
            refuse_terms(terms, agent, LISTED, requester="uid:2", override="why", way_out="x")
    refuse_terms(Terms(by_name=True), agent, NONE, requester="uid:1", override=None, way_out="x")


def test_the_user_behind_an_agent_counts_as_the_requester_of_its_task() -> None:
    terms = Terms(not_requester=True)
    for by in (Principal(name="uid:2"), Principal(name="agent:claude", through="uid:2")):
        with pytest.raises(NotAllowed, match="somebody else"):
            refuse_terms(terms, by, NONE, requester="agent:claude", override=None, way_out="x")
    signer = Principal(name="key:anna")
    refuse_terms(terms, signer, NONE, requester="agent:claude", override=None, way_out="x")
