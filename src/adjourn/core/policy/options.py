"""Options of a command in whatever spelling: any order, grouped, long, short, with their values.

Rules that ask or forbid find an option by this. Rules that let pass never do: they compare words.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product

import msgspec

from adjourn.core.policy.pattern import REST, Pattern, read_pattern

_MOST_VALUES = 3  # options of a rule whose next word is tried as their value
_LONGEST_GROUP = 6  # letters; longer words behind one dash are names
_LONGEST_WORD = 64  # characters of a word in which values are looked for behind letters

# The letters of long options, where a program is known. Of other programs the first letter counts.
_LETTERS_TEXT = {
    "rm": "force:f recursive:rR dir:d interactive:iI verbose:v one-file-system:",
    "cp": "force:f recursive:rRa archive:a no-clobber:n interactive:i update:u verbose:v",
    "mv": "force:f no-clobber:n interactive:i update:u verbose:v",
    "ln": "force:f symbolic:s no-dereference:n verbose:v",
    "chmod": "recursive:R changes:c quiet:f silent:f verbose:v reference:",
    "chown": "recursive:R changes:c quiet:f silent:f verbose:v no-dereference:h reference:",
    "chgrp": "recursive:R changes:c quiet:f silent:f verbose:v no-dereference:h reference:",
    "git": (
        "all:a amend: copy:cC delete:dD dry-run:n force:fCDM hard: interactive:i keep: merge:m"
        " message:m mirror: move:mM no-verify:n patch:p prune:p quiet:q recursive:r remotes:r"
        " set-upstream:u soft: tags:t track:t verbose:v"
    ),
}
_LETTERS: dict[str, dict[str, str]] = {
    program: dict(each.split(":") for each in text.split())
    for program, text in _LETTERS_TEXT.items()
}
# Letters that mean the same, and letters that mean several options at once
_SAME = {("rm", "r"): "R", ("rm", "R"): "r", ("cp", "r"): "Ra", ("cp", "R"): "ra"}
_SEVERAL = {
    ("git", "C"): ("--copy", "--force"),
    ("git", "D"): ("--delete", "--force"),
    ("git", "M"): ("--move", "--force"),
}
_FORCED_REF = "+"  # `git push origin +main` is `git push --force origin main`
# Programs whose options are words behind one dash: these are no groups of letters
_NAMES_TEXT = "clang ffmpeg find g++ gcc go java javac openssl opentofu packer terraform tofu vault"
_NAMES_BEHIND_ONE_DASH = frozenset(_NAMES_TEXT.split())


class WantedOption(msgspec.Struct, frozen=True):
    """An option that a rule names, and the value that it names with it."""

    program: str
    word: str
    value: str | None = None


class OptionEnd(msgspec.Struct, frozen=True):
    """What of a rule's words decides by its order, and what may stand anywhere."""

    operands: tuple[str, ...]
    wanted: tuple[WantedOption, ...]
    is_open: bool  # any further words may follow


def is_option(word: str) -> bool:
    """Say whether a word may be an option."""
    return len(word) > 1 and word.startswith(("-", "+"))


def rule_readings(argv: Sequence[str]) -> Iterator[OptionEnd]:
    """Yield the ways to read a rule's words: the word behind an option may be its value."""
    is_open = argv[-1:] == (REST,)
    words = tuple(argv[:-1] if is_open else argv)
    program = words[0].rpartition("/")[2] if words else ""
    options = [at for at, word in enumerate(words) if at and is_option(word)]
    with_value = [
        at
        for at in options
        if "=" not in words[at] and at + 1 < len(words) and not is_option(words[at + 1])
    ][:_MOST_VALUES]
    for choice in product((False, True), repeat=len(with_value)):
        taken = {at + 1 for at, is_taken in zip(with_value, choice, strict=True) if is_taken}
        wanted: list[WantedOption] = []
        for at in options:
            name, equals, value = words[at].partition("=")
            if at + 1 in taken:
                wanted.append(WantedOption(program, words[at], words[at + 1]))
            elif equals and read_pattern(name).is_literal:
                wanted.append(WantedOption(program, name, value))
            else:
                wanted.append(WantedOption(program, words[at]))
        operands = (word for at, word in enumerate(words) if at not in {*options, *taken})
        yield OptionEnd(tuple(operands), tuple(wanted), is_open)


class GivenOptions:
    """The options among the arguments of a command."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def has_all(self, wanted: Iterable[WantedOption]) -> bool:
        """Say whether all options that a rule names are among the words."""
        return all(self._has(each) for each in wanted)

    def _has(self, wanted: WantedOption) -> bool:
        pattern = read_pattern(wanted.word)
        if not pattern.is_literal:
            return any(pattern.matches(word) for word in self._words if is_option(word))
        keys = self._spellings(wanted.program, pattern.head)
        if wanted.value is None:
            return bool(keys)
        value: Pattern = read_pattern(wanted.value)
        return any(value.matches(given) for key in keys for given in self._values.get(key, ()))

    def _spellings(self, program: str, word: str) -> set[str]:
        """Return the keys under which a command has an option, each in another spelling."""
        name = word.lstrip("-+")
        keys = {name} & self._names
        if program in _NAMES_BEHIND_ONE_DASH:
            return keys | {each for each in self._long_names if name.startswith(each)}
        if not word.startswith("--"):
            if name.isalnum() and len(name) <= _LONGEST_GROUP:
                found = [self._spellings_of_letter(program, letter) for letter in name]
                keys |= found[-1] if all(found) else set()
            return keys

        # GNU programs take every beginning of a name that is not ambiguous
        keys |= {each for each in self._long_names if name.startswith(each)}
        known = _LETTERS.get(program)
        letters = name[:1].lower() + name[:1].upper() if known is None else known.get(name, "")
        keys |= self._letters.intersection(letters)
        if (program, name) == ("git", "force") and self._has_forced_ref:
            keys.add(_FORCED_REF)
        return keys

    def _spellings_of_letter(self, program: str, letter: str) -> set[str]:
        keys = self._letters.intersection(letter + _SAME.get((program, letter), ""))
        known = _LETTERS.get(program)
        if known is None:
            folded = letter.casefold()
            return keys | {name for name in self._long_names if name[0].casefold() == folded}
        if several := _SEVERAL.get((program, letter)):
            found = [self._spellings(program, each) for each in several]
            return keys | (found[0] if all(found) else set())
        for long, letters in known.items():
            if letter in letters:
                keys |= {name for name in self._long_names if long.startswith(name)}
        if (program, letter) == ("git", "f") and self._has_forced_ref:
            keys.add(_FORCED_REF)
        return keys

    @cached_property
    def _has_forced_ref(self) -> bool:
        return any(len(word) > 1 and word.startswith(_FORCED_REF) for word in self._words)

    @cached_property
    def _names(self) -> set[str]:
        return {word.lstrip("-+").partition("=")[0] for word in self._words if is_option(word)}

    @cached_property
    def _long_names(self) -> set[str]:
        names = {word[2:].partition("=")[0] for word in self._words if word.startswith("--")}
        return names - {""}

    @cached_property
    def _letters(self) -> set[str]:
        """The letters of all words behind one dash, up to what can be no letter."""
        return {letter for word in self._words for letter in _letters_of(word)}

    @cached_property
    def _values(self) -> dict[str, set[str]]:
        """The texts that may be the value of an option, by its name or letter."""
        values: dict[str, set[str]] = {}
        for at, word in enumerate(self._words):
            if not is_option(word):
                continue
            name, equals, value = word.lstrip("-+").partition("=")
            following = {value} if equals else set(self._words[at + 1 : at + 2])
            values.setdefault(name, set()).update(following)
            if word.startswith("--"):
                continue
            for place, letter in enumerate(_letters_of(word[:_LONGEST_WORD])):
                attached = word[place + 2 :].removeprefix("=")
                values.setdefault(letter, set()).update({attached} if attached else following)
        return values


def _letters_of(word: str) -> Iterator[str]:
    if not is_option(word) or word.startswith("--"):
        return
    for letter in word[1:]:
        if not letter.isalnum():
            return
        yield letter
