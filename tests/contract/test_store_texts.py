"""Whatever people and programs say can be kept in every store, and hostile names find nothing."""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adjourn.core.states import AskState
from adjourn.core.trail.events import first_broken
from adjourn.ports.store import Store
from adjourn.testing.store_finding import finds_nothing
from adjourn.testing.store_samples import given_up, keep
from adjourn.testing.values import a_run, a_spec, a_task, an_approval, an_ask, an_event, settled
from tests.hostile import HOSTILE_WORDS


def test_a_hostile_name_finds_nothing_and_breaks_nothing(store: Store) -> None:
    """Ids come from argv, and argv is bytes."""
    keep(store, a_task("abc1"), a_run("abc1", checkpoint_id="ck1x"), an_ask("ask1", "abc1"))
    words = (word for word in HOSTILE_WORDS if word != "")
    for word in (*words, os.fsdecode(b"\xff"), os.fsdecode(b"abc\xff"), "\ud800"):
        finds_nothing(store, word)


texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    st.sampled_from([w for w in HOSTILE_WORDS if w.isprintable()]),
)


words = st.one_of(texts, st.binary(max_size=20).map(os.fsdecode))


# Of users, logins and signers: none of these can hold a NUL
names = texts.map(lambda text: text.replace("\0", ""))


@given(texts, texts, texts, names)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
def test_any_text_can_be_kept(store: Store, one: str, other: str, third: str, name: str) -> None:
    ask = an_ask(prompt=one, choices=(other, third), key=third)
    approval = an_approval("ask-b", number=2, prompt=one, key=third, manifest=other)
    answered = settled(ask, AskState.ANSWERED, reply=one, by=name)
    event = an_event(by=one, facts={"said": other})
    with given_up(store) as tx:
        tx.add_task(a_task(message=one))
        tx.add_run(a_run(message=third))
        tx.add_ask(ask)
        tx.add_ask(approval)
        tx.save_ask(ask, answered)
        tx.append(event)
        assert tx.task("task-a").message == one
        assert tx.run("task-a", 1).message == third
        assert (tx.ask("ask-a"), tx.ask("ask-b")) == (answered, approval)
        assert tx.events("task-a") == [event]
        assert first_broken(tx.trail()) is None


@given(st.lists(words, max_size=3).map(tuple), words)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
def test_a_command_line_of_any_bytes_can_be_kept(
    store: Store, argv: tuple[str, ...], workspace: str
) -> None:
    """What the operating system hands us need not be UTF-8.

    It must not be lost, and must not stop anybody.
    """
    task = a_task(spec=a_spec(argv=argv, workspace=workspace))
    moved = replace(task, spec=replace(task.spec, workspace=f"{workspace}/elsewhere"), version=2)
    with given_up(store) as tx:
        tx.add_task(task)
        assert tx.task("task-a") == task
        tx.save_task(task, moved)
        assert tx.task("task-a") == moved
