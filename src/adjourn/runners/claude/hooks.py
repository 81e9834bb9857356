"""The hooks that Claude Code runs: whether ours are among them, and whether those of others have had their say."""

from adjourn.runners.claude.setup import LISTENS
from adjourn.runners.claude.stream import Began, Called, Event, HookBegan, HookEnded, Init, Starts

_BEFORE_A_CALL = "PreToolUse"


class Hooks:
    """What the stream tells of hooks. Of several that change a call, the one that ends last is right: that must be ours."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._unseen: list[str] = []  # our answers whose hooks have not ended yet
        self._are_on = False
        self.are_off = False  # the session has begun, and nothing was heard of ours

    def hear(self, event: Event) -> None:
        """Take in what the stream tells."""
        match event:
            case HookBegan(id=name, moment=moment) if moment == _BEFORE_A_CALL:
                self._running.add(name)
            case HookEnded():
                self._end(event)
            case Starts(state="started") | Init() | Began() | Called():
                self.are_off = not self._are_on
            case _:
                pass

    def _end(self, ended: HookEnded) -> None:
        self._running.discard(ended.id)
        self._are_on = self._are_on or LISTENS in ended.complained
        if ended.said.strip() in self._unseen:
            self._unseen.remove(ended.said.strip())

    def answer(self, answer: str) -> None:
        """Take note of what one of ours was told to say."""
        self._unseen.append(answer)

    def others_run(self, *, waiting: int) -> bool:
        """Say whether hooks of others run, while so many of ours wait."""
        return len(self._running) > waiting + len(self._unseen)
