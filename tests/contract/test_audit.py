"""The audit trail of a real store, edited behind its back: whatever was done, `verify` finds it."""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec
import pytest

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.call import canonical
from adjourn.core.errors import Misuse
from adjourn.core.trail.audit import Auditor, AuditVerdict, harmless
from adjourn.core.trail.events import GENESIS, Event
from adjourn.ports.store import Store
from adjourn.stores.sqlite.store import SqliteStore
from tests.contract.office import DONE, INTERRUPTED, ME, Office
from tests.stateful.world import MEMORY_DISK

EDITS = {"ci": 1_000, "full": 10_000}


def lived(store: Store, *, waiting: int = 0) -> list[str]:
    """Live through some tasks, and return a receipt of the last decision."""
    office = Office(store)
    for number in range(6):
        task, ask = office.waiting()
        office.now += 1_000
        office.reply(ask, Verb.APPROVE if number % 2 else Verb.REJECT, f"value {number}")
        if number % 2:
            office.run(office.task(task.id), DONE)
    office.controller.tasks.forget(office.run(office.start(), DONE).id, by=ME)
    office.run(office.start(), INTERRUPTED)
    _, ask = office.waiting()
    recorded = office.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=Principal(name="uid:1000")
    )
    for _ in range(waiting):
        office.waiting()
    return [receipt.token for receipt in office.controller.decisions.receipts(recorded)]


def audited(store: Store, receipts: list[str]) -> AuditVerdict:
    auditor = Auditor(receipts)
    with store.read() as view:
        if auditor.read(view.trail()):
            for task in view.tasks(limit=1_000):
                auditor.compare(task.id, head=view.chain_head(task.id), asks=view.asks(task.id))
    return auditor.verdict()


def test_a_trail_that_nobody_touched_is_whole(store: Store) -> None:
    receipts = lived(store)
    verdict = audited(store, receipts)
    assert verdict.is_whole
    assert verdict.forgotten
    assert verdict.head.partition(":")[0] == str(verdict.events)


def test_the_head_is_what_the_next_receipt_builds_on(store: Store) -> None:
    lived(store)
    with store.read() as view:
        place, seal = view.trail_head()
    assert audited(store, []).head == f"{place}:{seal.hex()}"
    assert audited(store, [f"{place}:{seal.hex()}"]).is_whole


# --- edits ----------------------------------------------------------------------------------------

# Database, chance and last place in; what was done out, or None
Edit = Callable[[Any, random.Random, int], str | None]


def one(db: Any, statement: str, *values: object) -> tuple[Any, ...]:
    found: list[tuple[Any, ...]] = db.execute(statement, values).fetchall()
    return found[0]


def change_body(db: Any, chance: random.Random, last: int) -> str | None:
    place = chance.randint(1, last)
    (body,) = one(db, "SELECT body FROM event WHERE no = ?", place)
    if body is None:
        return None
    fields = msgspec.msgpack.decode(body)
    which = chance.randrange(4)
    fields[which] = [
        "made_up",
        "uid:0",
        fields[2] + chance.choice([-1, 1]),
        {**fields[3], "call": 99},
    ][which]
    new = msgspec.msgpack.encode(fields)
    db.execute("UPDATE event SET body = ? WHERE no = ?", (new, place))
    return None if new == body else f"field {which} of {place}"


def flip_a_bit(db: Any, chance: random.Random, last: int) -> str | None:
    place, column = chance.randint(1, last), chance.choice(["body", "link", "seal"])
    (content,) = one(db, f"SELECT {column} FROM event WHERE no = ?", place)  # noqa: S608 -- one of three words
    if not content:
        return None
    at = chance.randrange(len(content) * 8)
    flipped = bytearray(content)
    flipped[at // 8] ^= 1 << at % 8
    db.execute(f"UPDATE event SET {column} = ? WHERE no = ?", (bytes(flipped), place))  # noqa: S608 -- one of three words
    return f"bit {at} of the {column} of {place}"


def delete(db: Any, chance: random.Random, last: int) -> str:
    place = chance.randint(1, last)
    db.execute("DELETE FROM event WHERE no = ?", (place,))
    if chance.random() < 0.5:
        for later in range(place + 1, last + 1):
            db.execute("UPDATE event SET no = ? WHERE no = ?", (later - 1, later))
    return f"deleted {place}"


def insert(db: Any, chance: random.Random, last: int) -> str:
    place = chance.randint(1, last)
    for later in range(last + 50, place - 1, -1):
        db.execute("UPDATE event SET no = ? WHERE no = ?", (later + 1, later))
    other = one(
        db,
        "SELECT task, body, link, seal FROM event WHERE no > ? ORDER BY no LIMIT 1",
        chance.randint(0, last),
    )
    db.execute(
        "INSERT INTO event (no, task, body, link, seal) VALUES (?, ?, ?, ?, ?)", (place, *other)
    )
    return f"inserted at {place}"


def swap(db: Any, chance: random.Random, last: int) -> str:
    one_place, other = chance.sample(range(1, last + 1), 2)
    for old, new in ((one_place, -1), (other, one_place), (-1, other)):
        db.execute("UPDATE event SET no = ? WHERE no = ?", (new, old))
    return f"swapped {one_place} and {other}"


def truncate(db: Any, chance: random.Random, last: int) -> str:
    place = chance.randint(1, last)
    db.execute("DELETE FROM event WHERE no >= ?", (place,))
    return f"cut off from {place}"


def give_to_another_task(db: Any, chance: random.Random, last: int) -> str | None:
    place = chance.randint(1, last)
    task, body = one(db, "SELECT task, body FROM event WHERE no = ?", place)
    other = chance.choice([row[0] for row in db.execute("SELECT no FROM task").fetchall()])
    db.execute("UPDATE event SET task = ? WHERE no = ?", (other, place))
    return None if body is None or other == task else f"gave {place} to another task"


def take_out(db: Any, chance: random.Random, last: int) -> str | None:
    """Forget one event, as `prune` forgets those of a whole task, with its true link."""
    place = chance.randint(1, last)
    (body,) = one(db, "SELECT body FROM event WHERE no = ?", place)
    links = true_links(db)
    db.execute("UPDATE event SET body = NULL, link = ? WHERE no = ?", (links[place], place))
    return None if body is None else f"took out {place}"


def recompute_a_part(db: Any, chance: random.Random, last: int) -> str:
    """Change an event and make all links and seals right again, up to some later event.

    And the heads of the tasks.
    """
    place = chance.randint(1, last)
    (body,) = one(db, "SELECT body FROM event WHERE no = ?", place)
    if body is None:
        db.execute("UPDATE event SET link = ? WHERE no = ?", (chance.randbytes(32), place))
    else:
        fields = msgspec.msgpack.decode(body)
        fields[1] = "uid:31337"
        db.execute(
            "UPDATE event SET body = ? WHERE no = ?", (msgspec.msgpack.encode(fields), place)
        )
    upto = chance.choice([last + 1_000, chance.randint(place, last + 1)])
    links = true_links(db)
    (seal,) = one(db, "SELECT seal FROM event WHERE no = ?", place - 1) if place > 1 else (GENESIS,)
    for later, link in sorted(links.items()):
        if place <= later <= upto:
            seal = sha256(seal + link).digest()
            db.execute("UPDATE event SET seal = ? WHERE no = ?", (seal, later))
    for task, head in heads(db).items():
        db.execute("UPDATE task SET head = ? WHERE no = ?", (head, task))
    return f"forged {place} up to {upto}"


EVENTS = "SELECT event.no, event.task, id, body, link FROM event LEFT JOIN task ON task.no = event.task ORDER BY event.no"


def true_links(db: Any) -> dict[int, bytes]:
    """Return the link that each event should have.

    Written here once more, apart from the program's own.
    """
    last: dict[int, bytes] = {}
    links: dict[int, bytes] = {}
    for place, task, name, body, link in db.execute(EVENTS).fetchall():
        if body is not None:
            kind, by, at, facts = msgspec.msgpack.decode(body)
            link = sha256(  # noqa: PLW2901 -- the chain goes on from it
                last.get(task, GENESIS)
                + canonical(Event(task_id=name or "", kind=kind, by=by, at=at, facts=facts))
            ).digest()
            last[task] = link
        links[place] = link
    return links


def heads(db: Any) -> dict[int, bytes]:
    links = true_links(db)
    return {
        task: links[place]
        for place, task, _, body, _ in db.execute(EVENTS).fetchall()
        if body is not None
    }


ALL_EDITS: list[Edit] = [
    change_body,
    flip_a_bit,
    delete,
    insert,
    swap,
    truncate,
    give_to_another_task,
    take_out,
    recompute_a_part,
]


@pytest.fixture
def quick_place() -> Iterator[Path]:
    """Return a directory in memory, where there is one: a thousand stores are opened."""
    with TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as place:
        yield Path(place)


@pytest.mark.timeout(900)
def test_every_random_edit_is_found_when_a_later_receipt_exists(
    quick_place: Path, sweep: str
) -> None:
    """A-R84: changed, deleted, inserted, swapped, cut off, or forged with all that follows.

    Found, each time.
    """
    original = quick_place / "original"
    store = SqliteStore(str(original))
    (receipt,) = lived(store)
    assert audited(store, [receipt]).is_whole
    store.close()
    db = apsw.Connection(str(original / "adjourn.db"))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    last = int(receipt.partition(":")[0])  # what stands after the receipt, it does not vouch for
    done: Counter[str] = Counter()
    unnoticed: list[str] = []
    chance = random.Random(7)
    while done.total() < EDITS[sweep]:
        edit = chance.choice(ALL_EDITS)
        verdict, what = edited(
            original, quick_place / "edited", edit, chance, last=last, receipt=receipt
        )
        if what is not None:
            done[edit.__name__] += 1
            unnoticed += [what] if verdict.is_whole else []
    assert unnoticed == []
    assert set(done) == {edit.__name__ for edit in ALL_EDITS}
    print(f"{done.total()} edits, all found: {dict(done)}")


def edited(
    original: Path, place: Path, edit: Edit, chance: random.Random, *, last: int, receipt: str
) -> tuple[AuditVerdict, str | None]:
    """Edit a copy of the store and audit it."""
    place.mkdir(exist_ok=True)
    place.chmod(0o700)
    for name in ("adjourn.db-wal", "adjourn.db-shm"):
        (place / name).unlink(missing_ok=True)
    shutil.copy(original / "adjourn.db", place / "adjourn.db")
    db = apsw.Connection(str(place / "adjourn.db"))
    db.execute("PRAGMA synchronous = OFF")
    what = edit(db, chance, last)
    db.close()
    store = SqliteStore(str(place))
    try:
        return audited(store, [receipt]), what
    finally:
        store.close()


def test_the_first_broken_event_is_named(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "place"))
    receipts = lived(store)
    with store.read() as view:
        rows = view.trail()
    wanted = next(row for row in rows if row.event and row.event.kind == "ask_rejected")
    assert wanted.event
    body = msgspec.msgpack.encode(["ask_approved", "uid:1000", wanted.event.at, wanted.event.facts])
    store._db.all("UPDATE event SET body = ? WHERE no = ?", body, wanted.place)
    broken = audited(store, receipts).broken
    assert broken
    assert (broken.place, broken.task_id, broken.kind) == (
        wanted.place,
        wanted.event.task_id,
        "ask_approved",
    )
    store.close()


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE ask SET state = 'approved', settled_at = 1, settled_by = 'uid:1000', level = 'L2' WHERE state = 'pending'",
        "UPDATE ask SET settled_by = 'uid:31337' WHERE state = 'rejected'",
        "UPDATE ask SET level = 'L2' WHERE state = 'approved'",
        "UPDATE task SET head = NULL",
    ],
)
def test_a_decision_that_the_trail_does_not_tell_is_found(tmp_path: Path, forgery: str) -> None:
    """Whoever writes a decision into the database past the program has to forge the trail, too."""
    store = SqliteStore(str(tmp_path / "place"))
    lived(store, waiting=1)
    store._db.do(forgery)
    verdict = audited(store, [])
    assert verdict.broken
    assert verdict.broken.task_id
    store.close()


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "7", ":", "7:", ":abcd", "7:abcd", f"7:{'x' * 32}", f"-1:{'a' * 32}", f"٣:{'a' * 32}"],
)
def test_what_is_no_receipt_is_told(text: str) -> None:
    with pytest.raises(Misuse, match="PLACE:SEAL"):
        Auditor([text])


def test_a_receipt_of_a_place_that_the_trail_never_reached_does_not_hold(store: Store) -> None:
    lived(store)
    verdict = audited(store, [f"99999:{'a' * 32}", f"0:{'0' * 64}"])
    assert [each.holds for each in verdict.receipts] == [False, False]
    assert not verdict.is_whole


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"
    assert harmless(f"x{cell}") == f"x{cell}"
