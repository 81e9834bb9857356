"""The hook at which every call of Codex waits, whatever Codex's own rules would let pass."""

import selectors
from collections.abc import Iterator
from hashlib import sha256

import msgspec

from adjourn.core.call import canonical
from adjourn.runners.channel import Message
from adjourn.runners.codex.program import toml_text
from adjourn.runners.hook import Answer, HookListener, WaitingHook, refuse_replaced

HOOK = "hook"  # the method of what a hook asks

# Codex runs a call whose hook takes longer: far beyond the moment at which the driver has it killed
SECONDS = 86_400
_PLACE = "/<session-flags>/config.toml:pre_tool_use:0:0"
_TRUSTED = "trusted"
SWITCHED_OFF = "look for what switches hooks off in Codex's own settings"


class _Hook(msgspec.Struct, rename="camel"):
    key: str = ""
    command: str = ""
    enabled: bool = False
    trust_status: str = ""


class _Hooks(msgspec.Struct):
    hooks: tuple[_Hook, ...] = ()


class Listed(msgspec.Struct):
    """The hooks that Codex would run."""

    data: tuple[_Hooks, ...] = ()

    def holds(self, command: str) -> bool:
        """Say whether Codex will run this hook before each call.

        One that it does not trust is skipped in silence.
        """
        found = [hook for each in self.data for hook in each.hooks if hook.key == _PLACE]
        return any(
            hook.command == command and hook.enabled and hook.trust_status == _TRUSTED
            for hook in found
        )


def hook_command(adjourn: str, proof: str) -> str:
    """Return the line that Codex has a shell run: exit code 0 only if adjourn prints the proof.

    Codex takes most failures of a hook for a yes, and silence as well. Exit code 2 with a word on
    stderr is always a no.
    """
    # Slow to import, and seldom needed
    from shlex import quote

    says_yes = f'answer=$({quote(adjourn)} _hook) && [ "$answer" = {proof} ]'
    return f"{says_yes} || {{ echo 'Not run: adjourn has not said yes' >&2; exit 2; }}"


def override(command: str) -> str:
    """Return the setting that makes Codex run the hook, and trust this line and no other hook."""
    handler = f'{{type="command",command={toml_text(command)},timeout={SECONDS}}}'
    state = f'{{{toml_text(_PLACE)}={{trusted_hash="{_digest(command)}"}}}}'
    return f'hooks={{PreToolUse=[{{matcher="*",hooks=[{handler}]}}],state={state}}}'


def _digest(command: str) -> str:
    handler = {"async": False, "command": command, "timeout": SECONDS, "type": "command"}
    described = {"event_name": "pre_tool_use", "hooks": [handler], "matcher": "*"}
    return f"sha256:{sha256(canonical(described)).hexdigest()}"


class WaitingHooks:
    """The hooks that wait for an answer, each as if it were a request of the app-server."""

    def __init__(self, place: str, *, seal: str) -> None:
        self._place = place
        self._seal = seal
        self._waiting: dict[str, WaitingHook] = {}
        self._count = 0
        self.open()

    def open(self) -> None:
        """Listen, from now on or again."""
        self._selector = selectors.EpollSelector()
        self._listener = HookListener(self._place, self._selector)

    def fileno(self) -> int:
        """Return what to poll."""
        return self._selector.fileno()

    def heard(self) -> Iterator[Message]:
        """Take in what hooks say; yield those that have said all."""
        for key, _ in self._selector.select(0):
            key.data()
        for asked in self._listener.take():
            self._count += 1
            name = f"{HOOK}-{self._count}"
            self._waiting[name] = asked
            yield Message(
                id=name, method=HOOK, params=msgspec.Raw(msgspec.json.encode(asked.request))
            )

    def refuse_replaced(self) -> None:
        """Raise if hooks find something else in the place of our socket."""
        refuse_replaced(self._listener)

    def answer(self, name: str, answer: Answer) -> None:
        """Answer a hook."""
        refuse_replaced(self._listener)
        self._waiting.pop(name).answer(answer, seal=self._seal)

    def close(self) -> None:
        """Stop listening; a hook that still asks gets no answer, which is a no."""
        for asked in self._waiting.values():
            asked.drop()
        self._waiting.clear()
        self._listener.close()
        self._selector.close()
