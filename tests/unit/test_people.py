"""Whose approvals count, how many are needed, who is missing, and what the trail must tell.

Promises 20.
"""

import msgspec
import pytest

from adjourn.core.ask import ApprovalAsk, Principal, Terms
from adjourn.core.authority.scopes import Rights, person_of, refuse_terms
from adjourn.core.authority.signed import key_of_signature
from adjourn.core.errors import NotAllowed
from adjourn.core.people import (
    GivenApproval,
    Person,
    Team,
    find_person,
    missing_words,
    narrowed,
    resolve,
)
from adjourn.core.policy.judge import judge
from adjourn.core.policy.judgement import Judgement, approved_on, is_stricter, strictest
from adjourn.core.policy.policy import Policy, decode_policy, encode_policy
from adjourn.core.policy.policy_file import read_policy
from adjourn.core.trail.audit import Auditor
from adjourn.core.trail.events import GENESIS, Event, Sealed, link_after, seal_after
from adjourn.testing.values import an_approval

ANNA = Person("anna", ("key:anna", "uid:1000"))
BEN = Person("ben", ("key:ben",))
CLEO = Person("cleo", ("db:cleo",))
PEOPLE = (ANNA, BEN, CLEO)
OPS = Team("ops", ("ben", "cleo"))


def given(*people: str, digest: str = "d") -> tuple[GivenApproval, ...]:
    return tuple(
        GivenApproval(person=name, by=f"key:{name}", at=1, level="L2", digest=digest)
        for name in people
    )


def terms_of(*rules: str) -> Terms:
    text = "".join(f'[[rule]]\ntool = "command"\n{rule}\n' for rule in rules)
    content = read_policy(text, source="p", is_project=False)
    assert content.problems == ()
    policy = Policy(rules=content.rules, people=PEOPLE, teams=(OPS,))
    assert decode_policy(encode_policy(policy)) == policy
    return judge(policy, "command", {"argv": ["ls"]}, workspace="/", now=0).terms


@pytest.mark.parametrize(
    ("rules", "approvals", "names"),
    [
        (["approvals = 2"], 2, "anna ben cleo"),
        (['approvers = ["anna"]'], 1, "anna"),
        (['approvals = 2\napprovers = ["anna", "team:ops"]'], 2, "anna ben cleo"),
        (['approvals = 2\napprovers = ["anna", "team:ops"]', "approvals = 1"], 2, "anna ben cleo"),
        (['approvers = ["anna", "ben"]', 'approvers = ["team:ops"]'], 1, "ben"),
        (['approvers = ["anna"]', 'approvers = ["mallory"]'], 1, ""),
        (['approvers = ["team:nobody"]'], 1, ""),
        (['approvers = ["ops"]'], 1, ""),
    ],
)
def test_of_several_rules_the_largest_number_counts_and_whom_each_names(
    rules: list[str], approvals: int, names: str
) -> None:
    terms = terms_of(*rules)
    assert (terms.approvals, terms.people) == (
        approvals,
        tuple(person for person in PEOPLE if person.name in names.split()),
    )


def test_one_approval_of_anybody_counts_no_people() -> None:
    assert terms_of("approvals = 1").people is None
    assert not terms_of('approver = "human"').is_counted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("approvals = 0", "`approvals` must be a number"),
        ("approvals = 21", "`approvals` must be a number"),
        ("approvals = true", "`approvals` must be a number"),
        ('approvals = "2"', "`approvals` must be a number"),
        ('approvers = ["Anna"]', "a name has lower-case letters"),
        ('approvers = ["аnna"]', "a name has lower-case letters"),  # noqa: RUF001 -- Cyrillic letters
        ('approvers = ["uid:0"]', "a name has lower-case letters"),
        ("approvers = []", "must be a list of names"),
        ('approvers = "anna"', "must be a list of names"),
        ('remind_after = "soon"', "`remind_after` must be a time"),
        ('remind_after = "2h"\nexpires_after = "1h"', "must be before the expiry"),
        ('remind_after = "1h"\nescalate_to = ["pager"]', "only the user's own may"),
    ],
)
def test_a_wrong_rule_says_what_is_wrong(text: str, why: str) -> None:
    (problem, *_) = read_policy(f"[[rule]]\n{text}", source="p", is_project=True).problems
    assert why in problem.what


def test_an_escalation_needs_its_time() -> None:
    text = '[[rule]]\naction = "prompt"\nescalate_to = ["pager"]'
    (problem,) = read_policy(text, source="p", is_project=False).problems
    assert "goes with `remind_after`" in problem.what


def test_a_project_defines_nobody() -> None:
    (problem,) = read_policy('[[person]]\nname = "x"', source="p", is_project=True).problems
    assert "unknown key `person`" in problem.what


# --- who is who -----------------------------------------------------------------------------------


def test_a_principal_of_two_people_is_nobody() -> None:
    assert find_person(PEOPLE, ["uid:1000"]) == "anna"
    assert find_person(PEOPLE, ["uid:1000", "key:anna"]) == "anna"
    assert find_person(PEOPLE, ["uid:1000", "key:ben"]) is None
    assert find_person(PEOPLE, ["uid:10000", "KEY:anna", "key:anna "]) is None
    assert resolve(["team:ops", "anna"], PEOPLE, [OPS]) == PEOPLE


@pytest.mark.parametrize(
    ("by", "also", "person"),
    [
        (Principal(name="uid:1000"), (), "anna"),
        (Principal(name="key:x", key="key:ben"), (), "ben"),
        (Principal(name="uid:1000", key="key:ben"), (), None),
        (Principal(name="uid:1000"), ("key:ben",), None),  # it is somebody else as well
        (Principal(name="uid:7"), ("key:ben",), None),  # other names let nobody in
        (Principal(name="agent:claude"), ("uid:1000",), None),
        (Principal(name="uid:0"), (), None),  # sudo
    ],
)
def test_who_counts_as_whom(by: Principal, also: tuple[str, ...], person: str | None) -> None:
    terms = Terms(people=(*PEOPLE, Person("host", ("agent:claude",))), approvals=2)
    assert person_of(terms, by, Rights(also=also)) == person


def test_the_requester_is_the_same_person_under_another_name() -> None:
    terms = Terms(people=PEOPLE, approvals=2, not_requester=True)
    with pytest.raises(NotAllowed, match="anna asked for this, as uid:1000"):
        refuse_terms(
            terms,
            Principal(name="key:anna"),
            Rights(),
            requester="uid:1000",
            override=None,
            way_out="",
        )


def test_the_fingerprint_of_a_key_is_that_of_ssh_keygen() -> None:
    assert (
        key_of_signature("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----") is None
    )
    assert key_of_signature("") is None
    assert key_of_signature("x\n!!\ny") is None


# --- narrowing ------------------------------------------------------------------------------------


def test_people_are_only_ever_narrowed() -> None:
    one, two = (ANNA, BEN), (Person("anna", ("uid:1000",)), CLEO)
    assert narrowed(None, one) == narrowed(one, None) == one
    assert narrowed(one, two) == (Person("anna", ("uid:1000",)),)
    assert narrowed(one, (Person("anna", ("key:other",)),)) == ()


@pytest.mark.parametrize(
    ("now", "is_more"),
    [
        (Terms(approvals=2, people=PEOPLE), False),
        (Terms(), False),
        (Terms(approvals=1, people=(*PEOPLE, Person("dan", ("key:dan",)))), False),
        (Terms(approvals=3, people=PEOPLE), True),
        (Terms(approvals=2, people=(ANNA, BEN)), True),
        (Terms(approvals=2, people=(ANNA, BEN, Person("cleo", ("db:other",)))), True),
        (Terms(approvals=2, people=PEOPLE, signed=True), True),
    ],
)
def test_an_approval_holds_no_more_once_more_is_needed(now: Terms, *, is_more: bool) -> None:
    approved = approved_on(Terms(approvals=2, people=PEOPLE))
    assert is_stricter(Judgement(terms=now), than=approved) is is_more
    both = strictest(Judgement(terms=now), approved)
    assert both.terms.approvals >= 2


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needed", "have", "words"),
    [
        (2, "", "2 of anna, ben, cleo"),
        (2, "anna", "1 of ben, cleo"),
        (3, "anna", "ben, cleo"),
        (4, "anna", "3, and only 2 who may: ben, cleo"),
    ],
)
def test_it_is_said_who_is_missing(needed: int, have: str, words: str) -> None:
    assert missing_words(needed, PEOPLE, given(*have.split())) == words


def test_an_ask_that_one_approval_settles_counts_nothing() -> None:
    assert an_approval().count_words is None
    nobody = an_approval(terms=Terms(approvals=1, people=()))
    assert nobody.count_words == "0 of 1 approvals; still missing: 1, and only 0 who may: nobody"


# --- the trail ------------------------------------------------------------------------------------


def audited(*events: Event, ask: ApprovalAsk | None = None) -> str:
    """Return why a trail of these events is broken, or nothing."""
    link, seal, rows = GENESIS, GENESIS, list[Sealed]()
    for event in events:
        link = link_after(link, event)
        seal = seal_after(seal, link)
        rows.append(Sealed(event=event, seal=seal))
    auditor = Auditor()
    if auditor.read(rows) and ask:
        auditor.compare("t", head=link, asks=[ask])
    broken = auditor.verdict().broken
    return broken.why if broken else ""


def told(kind: str, by: str = "adjourn", **facts: str | int | None) -> Event:
    return Event(task_id="t", kind=kind, by=by, at=1, facts={"ask": "a", "call": 1, **facts})


OPENED = told("ask_opened", approvals=2, ask_kind="approval")
STARTED = told("call_executing", grounds="decision", digest="d")


def approval(person: str, by: str = "", digest: str = "d") -> Event:
    return told("approval_given", by or f"key:{person}", person=person, digest=digest)


def approved(by: str = "key:ben", digest: str = "d") -> Event:
    return told("ask_approved", by, digest=digest)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([OPENED, approval("anna"), approval("ben"), approved(), STARTED], ""),
        ([OPENED, approval("ben"), approved(), STARTED], "started with 1 of 2 approvals"),
        ([OPENED, approved(), STARTED], "started with 0 of 2 approvals"),
        ([OPENED, approval("ben"), approval("ben"), approved(), STARTED], "1 of 2 approvals"),
        (
            [OPENED, approval("anna", by="key:ben"), approval("ben"), approved(), STARTED],
            "1 of 2 approvals",
        ),
        (
            [OPENED, approval("anna", digest="other"), approval("ben"), approved(), STARTED],
            "1 of 2 approvals",
        ),
        (
            [
                *(OPENED, approval("anna"), told("call_edited", "key:ben", was="d", digest="d")),
                *(approval("ben"), approved(), STARTED),
            ],
            "1 of 2 approvals",
        ),
        ([OPENED, approval("anna"), approval("ben"), STARTED], "nobody had approved it"),
    ],
)
def test_a_trail_has_all_approvals_of_what_ran(events: list[Event], why: str) -> None:
    found = audited(*events)
    assert (why in found) if why else not found, found


def test_a_store_that_has_other_approvals_than_the_trail_is_found() -> None:
    ask = an_approval(id="a", task_id="t", terms=Terms(approvals=2, people=PEOPLE))
    one = msgspec.structs.replace(ask, given=given("anna"))
    two = msgspec.structs.replace(ask, given=given("anna", "ben"))
    assert audited(OPENED, approval("anna"), ask=one) == ""
    for other in (ask, two):
        assert "has other approvals" in audited(OPENED, approval("anna"), ask=other)
