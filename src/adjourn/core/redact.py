"""Takes secrets out of copies: manifests, notifications, logs.

What is hashed, run, or shown to the person who decides stays whole.
"""
# ruff: noqa: RUF001 -- our mark has quotation marks of its own, so that nobody takes it for markup

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar, assert_never, cast

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, UncertainAsk
from adjourn.core.call import Bytes, Call, Json, arguments_of, canonical, exact
from adjourn.core.errors import Misuse
from adjourn.core.task import Run, Task

TYPE_CHECKING = False

if TYPE_CHECKING:  # `inbox` loads this where nobody looks, and needs none of what these bring
    from adjourn.core.agent.calls import Report
    from adjourn.core.scene import Scene

LONGEST_PATTERN = 300
Value = TypeVar("Value")
HasMessage = TypeVar("HasMessage", Task, Run, "Report")

_MARK = re.compile("‹redacted [0-9]+ bytes›")
_RENDERED_MARK = (
    r"(?:\\u\{2039\}|\\xe2\\x80\\xb9)(redacted [0-9]+ bytes)(?:\\u\{203a\}|\\xe2\\x80\\xba)"
)
_JSON_BEGINS, _JSON_ENDS = frozenset("{["), frozenset("}]")
_PIECE, _OVERLAP = 1_000, 200
_SHORT, _MOST_SHORT = 64, 4_096  # characters of a short text, and how many are remembered
_MOST_QUANTIFIERS = 3

_SECRETIVE = (
    r"(?:pass(?:word|wd|phrase)|secret|token|api[_.-]?key|apikey|access[_.-]?key(?:[_.-]?id)?|secret[_.-]?key|private[_.-]?key"
    r"|signing[_.-]?key|auth[_.-]?key|credential|authorization|pwd)s?"
)
_NAME = rf"(?:[A-Za-z0-9_.-]*[_.-])?{_SECRETIVE}"
_SECRETIVE_HINTS = ("pass", "secret", "token", "key", "credential", "authorization", "pwd")
_VALUE = r"[^\s\"'`&|;<>(){}\[\],$*‹\\][^\s\"'`&|;<>(){}\[\],‹]"

# Each with words of which one is in every text that it can match, in small letters: where none is,
# it is not even compiled.
_BUILT_IN: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("private key",),
        (
            r"(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----"
            r"(?:.*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----|.*)"
        ),
    ),
    (("akia", "asia", "abia", "acca"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    (("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    (("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
    (("xox", "xapp-"), r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
    (
        ("hooks.slack.com",),
        r"https://hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})",
    ),
    (("k_live_", "k_test_"), r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    (("whsec_",), r"\bwhsec_[A-Za-z0-9+/=_-]{16,}"),
    (("sk-",), r"\bsk-(?:[a-z0-9]{2,10}-)?[A-Za-z0-9_-]{20,}"),
    (("aiza",), r"\bAIza[0-9A-Za-z_-]{35}"),
    (("ya29.",), r"\bya29\.[A-Za-z0-9_-]{20,}"),
    (("npm_",), r"\bnpm_[A-Za-z0-9]{30,}"),
    (("pypi-",), r"\bpypi-[A-Za-z0-9_-]{40,}"),
    (("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    (("dop_v1_",), r"\bdop_v1_[0-9a-f]{40,}"),
    (("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (("hvs.", "hvb."), r"\bhv[sb]\.[A-Za-z0-9_-]{20,}"),
    (("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    (("bearer", "basic"), r"(?i)\b(?:bearer|basic)[ \t]+([A-Za-z0-9._~+/=-]{12,})"),
    (("-u ", "--user "), r"(?<!\S)(?:-u|--user)[ \t]+[^\s:]+:(?![0-9]+\b)([^\s\"'‹]{4,})"),
    (("://",), r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/@:\"'?#]*:([^\s/@\"']+)@"),
    (_SECRETIVE_HINTS, rf"(?i)(?<![A-Za-z0-9]){_NAME}[\"']?[ \t]*=[ \t]*({_VALUE}{{5,}})"),
    (_SECRETIVE_HINTS, rf"(?i)(?<![A-Za-z0-9]){_NAME}[ \t]*[=:][ \t]*'([^'\n]{{4,}})'"),
    (_SECRETIVE_HINTS, rf'(?i)(?<![A-Za-z0-9]){_NAME}[ \t]*[=:][ \t]*"([^"\n]{{4,}})"'),
    (
        _SECRETIVE_HINTS,
        rf"(?i)(?<![A-Za-z0-9]){_NAME}[ \t]*:[ \t]*({_VALUE}{{7,}})(?<=[0-9!#%^_/+=-])",
    ),
    (_SECRETIVE_HINTS, rf"(?i)(?<![A-Za-z0-9]){_NAME}[ \t]*:[ \t]*(?=[^\s]*[0-9])({_VALUE}{{7,}})"),
    (_SECRETIVE_HINTS, rf"(?i)(?<![A-Za-z0-9]){_NAME}[\"'][ \t]*:[ \t]*[\"']([^\"']{{4,}})[\"']"),
    # Quotes inside of quotes, as a shell's command line or JSON inside of JSON spells them
    (
        _SECRETIVE_HINTS,
        rf"(?i)(?<![A-Za-z0-9]){_NAME}[\"'\\]*[ \t]*[=:][ \t]*[\"'\\]{{2,8}}([^\s\"'\\‹]{{4,}})",
    ),
    (_SECRETIVE_HINTS, rf"(?i)(?<![A-Za-z0-9_])--?{_NAME}[ \t]+[\"']?({_VALUE}{{5,}})"),
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def mark(secret: str) -> str:
    """Return what stands in the place of a secret."""
    return f"‹redacted {len(secret.encode('utf-8', 'surrogateescape'))} bytes›"


def plainly(text: str) -> str:
    """Return rendered text with our marks as they are meant to be read."""
    return re.sub(_RENDERED_MARK, r"‹\1›", text)


class Redactor:
    """Takes out what looks like a secret, and what the user's own patterns match."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._own = [_checked(pattern) for pattern in patterns]
        # A document has the same short texts again and again: names of keys, states, kinds
        self._short: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return a text without its secrets; one that is a JSON document is looked at as one."""
        if len(text) > _SHORT:
            return self._clean(text)
        clean = self._short.get(text)
        if clean is None:
            if len(self._short) >= _MOST_SHORT:
                self._short.clear()
            clean = self._short[text] = self._clean(text)
        return clean

    def _clean(self, text: str) -> str:
        if text[:1] in _JSON_BEGINS and text[-1:] in _JSON_ENDS:
            text = self._json(text)
        small = text.lower()
        for hints, pattern in _BUILT_IN:
            if any(hint in small for hint in hints):
                text = _compiled(pattern).sub(_covered, text)
        for own in self._own:
            text = "".join(
                _without(own, piece)
                for line in text.splitlines(keepends=True)
                for piece in _pieces(line, own)
            )
        return text

    def _json(self, text: str) -> str:
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return text
        clean = self.value(document)
        return text if clean == document else msgspec.json.encode(clean).decode()

    def words(self, words: Sequence[str]) -> list[str]:
        """Return a command line without its secrets.

        What follows an option such as --password goes whole.
        """
        pairs = zip(("", *words), words, strict=False)
        return [self._word(word, after=before) for before, word in pairs]

    def _word(self, word: str, *, after: str) -> str:
        is_secret = after.startswith("-") and _is_secretive(after.lstrip("-"))
        if word and not word.startswith("-") and is_secret:
            return word if _MARK.fullmatch(word) else mark(word)
        name, equals, given = word.partition("=")
        if equals and given and _is_secretive(name.lstrip("-")) and not _MARK.search(given):
            return f"{name}={mark(given)}"
        if after in {"-u", "--user"} and ":" in word:
            user, _, password = word.partition(":")
            return (
                f"{user}:{mark(password)}" if password and not _MARK.fullmatch(password) else word
            )
        return self.text(word)

    def value(self, value: Any) -> Any:
        """Return a JSON value without its secrets.

        What has a name such as `password` goes whole.
        """
        match value:
            case str():
                return self.text(value)
            case {"bytes": str(encoded)} if len(value) == 1:
                return self._bytes(encoded)
            case Mapping():
                named = cast("Mapping[str, Any]", value)
                return {
                    self.text(str(key)): self._named(str(key), item) for key, item in named.items()
                }
            case list() | tuple():
                return self._list(cast("Sequence[Any]", value))
            case _:
                return value

    def _list(self, items: Sequence[Any]) -> list[Any]:
        if all(isinstance(item, str) for item in items):
            return list(self.words(items))
        return [self.value(item) for item in items]

    def _named(self, key: str, item: Any) -> Any:
        if isinstance(item, str) and item and _is_secretive(key) and not _MARK.fullmatch(item):
            return mark(item)
        return self.value(item)

    def _bytes(self, encoded: str) -> Json:
        try:
            word = exact(Bytes(encoded))
        except ValueError:
            return {"bytes": encoded}
        clean = self.text(word)
        return {"bytes": encoded} if clean == word else clean

    def document(self, document: object) -> Any:
        """Return a document as it may leave the store."""
        return self.value(msgspec.to_builtins(document))

    def copied(self, value: Value) -> Value:
        """Return a value of ours as it may leave the store."""
        return msgspec.convert(self.document(value), type(value))

    # --- what a rendered copy is made of ----------------------------------------------------------

    def scene(self, scene: "Scene") -> "Scene":
        """Return a task with what belongs to it, as it may leave the store.

        Digests stay those of the whole bytes.
        """
        return msgspec.structs.replace(
            scene,
            task=self.task(scene.task),
            run=self.run(scene.run) if scene.run else None,
            report=self._with_message(scene.report) if scene.report else None,
            asks=tuple(self.ask(ask) for ask in scene.asks),
            calls={number: self.call(call) for number, call in scene.calls.items()},
            replaced={ask_id: self.call(call) for ask_id, call in scene.replaced.items()},
            why={ask_id: self.copied(why) for ask_id, why in scene.why.items()},
            copies={
                ask_id: {path: self._optional(text) for path, text in texts.items()}
                for ask_id, texts in scene.copies.items()
            },
            originals={
                number: self.body(scene.calls[number].tool, body)
                for number, body in scene.originals.items()
            },
            all_calls=tuple(self.call(call) for call in scene.all_calls),
            changes=self.copied(scene.changes) if scene.changes else None,
        )

    def task(self, task: Task) -> Task:
        """Return a task as it may leave the store."""
        spec = msgspec.structs.replace(
            task.spec,
            argv=tuple(self.words(task.spec.argv)),
            prompt=self._optional(task.spec.prompt),
        )
        return self._with_message(msgspec.structs.replace(task, spec=spec))

    def run(self, run: Run) -> Run:
        """Return a run as it may leave the store."""
        return self._with_message(run)

    def ask(self, ask: Ask) -> Ask:
        """Return an ask as it may leave the store."""
        settled = ask.settlement
        if settled:
            settled = msgspec.structs.replace(settled, reply=self._optional(settled.reply))
        clean = msgspec.structs.replace(ask, prompt=self.text(ask.prompt), settlement=settled)
        match clean:
            case ApprovalAsk():
                return msgspec.structs.replace(
                    clean, key=self._key(clean.key), manifest=self._optional(clean.manifest)
                )
            case QuestionAsk():
                choices = tuple(self.words(clean.choices))
                return msgspec.structs.replace(clean, key=self._key(clean.key), choices=choices)
            case UncertainAsk():
                return clean
            case _:
                assert_never(clean)

    def _key(self, key: str | None) -> str | None:
        """Return a key, or nothing if it holds a secret: its ask has an id, too."""
        return key if key is None or self.text(key) == key else None

    def call(self, call: Call) -> Call:
        """Return a call as it may leave the store."""
        return msgspec.structs.replace(call, body=self.body(call.tool, call.body))

    def body(self, tool: str, body: bytes) -> bytes:
        """Return the bytes of a call as they may leave the store."""
        return canonical({"arguments": self.value(arguments_of(body)), "tool": tool})

    def _with_message(self, value: HasMessage) -> HasMessage:
        return msgspec.structs.replace(value, message=self._optional(value.message))

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)


@lru_cache(maxsize=1024)
def _is_secretive(name: str) -> bool:
    return _compiled(rf"(?i){_NAME}").fullmatch(name) is not None


def _covered(match: re.Match[str]) -> str:
    """Return what was matched with its secret, its first group or all of it, taken out."""
    group = 1 if match.re.groups else 0
    secret = match[group] or ""
    if not secret or _MARK.search(secret):
        return match[0]
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + mark(secret) + match[0][end:]


# --- the user's own patterns ----------------------------------------------------------------------


def _checked(pattern: str) -> re.Pattern[str]:
    if len(pattern) > LONGEST_PATTERN or not is_tame(pattern):
        raise Misuse(
            f"`redact`: the pattern {pattern!r} cannot be used",
            way_out="redact = ['ACME-[0-9]+'] in that file",
        )
    return _compiled(pattern)


def _pieces(line: str, own: re.Pattern[str]) -> Iterator[str]:
    """Cut a long line, so that no pattern takes long.

    Where a cut would split a match, it is made before the match.
    """
    while len(line) > _PIECE:
        across = next(
            (
                found
                for found in own.finditer(line[: _PIECE + _OVERLAP])
                if found.start() < _PIECE < found.end()
            ),
            None,
        )
        at = across.start() or across.end() if across else _PIECE
        yield line[:at]
        line = line[at:]
    yield line


def _without(own: re.Pattern[str], piece: str) -> str:
    return own.sub(_covered, piece)


def is_tame(pattern: str) -> bool:
    """Say whether a pattern is valid and cannot take for ever.

    Few repetitions, none of which repeats another or a choice.
    """
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return _is_plain(re.sub(r"\\.", "a", pattern, flags=re.DOTALL)) and not re.search(
        r"\\[1-9]|\(\?P=|\(\?\(", pattern
    )


_CLASS = r"\[\^?\]?[^\]]*\]"
_REPEATS = r"[*+]|\{[0-9]*,[0-9]*\}"
_GROUP = r"\((?:\?(?:P<\w+>|[:=!>]|<[=!]|[a-z]+:))?([^()]*)\)([*+?]|\{[0-9,]*\})?"


def _is_plain(pattern: str) -> bool:
    """Look at a pattern without escapes: no group repeats that holds a repetition or a choice."""
    pattern = re.sub(_CLASS, "a", pattern)
    if len(re.findall(_REPEATS, pattern)) > _MOST_QUANTIFIERS:
        return False
    while group := re.search(_GROUP, pattern):
        is_loose = bool(re.search(r"[*+?|{#]", group[1]))
        if is_loose and group[2] and group[2] != "?":
            return False
        pattern = pattern[: group.start()] + ("#" if is_loose else "a") + pattern[group.end() :]
    return True
