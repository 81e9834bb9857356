"""Random streams of keys, held keys, pastes and clicks: nothing unseen is ever approved."""

import random
import re

import pytest

from adjourn.tui.arming import ALONE, QUIET, SHOWN, Arming
from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal
from tests.tui.pilot import approvals

_DOUBLE_CLICK = b"\x1b[<0;10;3M\x1b[<0;10;3m\x1b[<0;10;3M\x1b[<0;10;3m"


def decided(presses: list[float], *, shown_at: float) -> list[float]:
    """Return which presses of one key decide, if the same text stayed on the screen."""
    arming, found = Arming(), []
    for number, moment in enumerate(presses):
        arming.note_key(moment)
        why = arming.why_not(moment, shown_at=shown_at)
        follows = presses[number + 1] - moment if number + 1 < len(presses) else 1.0
        if why is None and follows >= ALONE:
            found.append(moment)
    return found


@pytest.mark.parametrize("delay", [0.15, 0.2, 0.25, 0.3, 0.5, 0.66, 1.0])
@pytest.mark.parametrize("rate", [10.9, 15.0, 25.0, 30.0, 50.0])
def test_a_key_that_is_held_down_decides_at_most_once(delay: float, rate: float) -> None:
    """Whatever the pause before it repeats, and however fast it does."""
    presses = [10.0, *(10.0 + delay + number / rate for number in range(60))]
    assert decided(presses, shown_at=0.0) in ([], [10.0])


def test_a_press_decides_alone_and_not_before_the_text_was_there() -> None:
    assert decided([10.0], shown_at=10.0 - SHOWN) == [10.0]
    assert decided([10.0], shown_at=10.0 - SHOWN + 0.01) == []
    assert decided([10.0, 10.0 + QUIET / 2], shown_at=0.0) == []
    assert Arming().why_not(10.0, shown_at=None) is not None


@pytest.mark.serial
def test_random_streams_never_approve_what_was_not_on_the_screen_whole(
    shell: Shell, sweep: str
) -> None:
    """What a person could have seen is read from the terminal, not from the program."""
    count = 8
    asks = approvals(shell, count)
    chance = random.Random(17)
    pieces = [
        *(b"a", b"aaaaaaaaaa", b"\x1b[200~aaaa\ry\r\x1b[201~", b"jaja", b"k", b"j", b"a\r", b"ay"),
        *(_DOUBLE_CLICK, b"G", b"g", b"\x1b[6~", b" ", b"\x1b", b"aj"),
    ]
    seen: set[int] = set()

    def look(person: Terminal) -> None:
        # The text, not the list: its call, and its last row
        text = "\n".join(row.partition("│")[2] for row in person.lines)
        found = re.search(r"\$ echo number-(\d+)", text)
        if found and "of 0 entries" in text:
            seen.add(int(found[1]))

    with Terminal(shell, "tui", columns=120, rows=40) as person:
        person.shows("number-0")
        for _ in range(1_000 if sweep == "full" else 10):
            look(person)
            before = {ask["id"] for ask in shell.inbox()} if sweep == "full" else set()
            for _ in range(chance.randint(1, 4)):
                person.type(chance.choice(pieces))
                person.listen(chance.choice([0.0, 0.02, 0.1, 0.3]))
                look(person)
            if sweep == "full" and len(before) < 3:
                asks += approvals(shell, 3, first=len(asks))
        person.type(b"\x1b")
        person.listen(0.3)
        person.type(b"\x03")
        person.ends()
    still = {ask["id"] for ask in shell.inbox()}
    approved = {at for at, ask in enumerate(asks) if ask["id"] not in still}
    assert approved <= seen
