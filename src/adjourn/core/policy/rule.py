"""What a rule of a policy says, and an index that finds the rules that match a call."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from adjourn.core.ask import Approver
from adjourn.core.call import Json, canonical
from adjourn.core.policy.judgement import Action, Effect
from adjourn.core.policy.options import (
    GivenOptions,
    OptionEnd,
    WantedOption,
    is_option,
    rule_readings,
)
from adjourn.core.policy.pattern import REST, Pattern, read_pattern
from adjourn.core.task import Milliseconds

ANY_TOOL = "*"
# The arguments that hold commands; a pattern over their text allows nothing
TEXT_KEYS = frozenset({"argv", "command"})
_LITERAL = re.compile(r"[A-Za-z0-9_]")
_WILD_RUNS = re.compile(r"[^*?\[]+")
_HEAD = re.compile(r"[^*?\[]*")
_MOST_WILD = 8  # wildcards in a word; with more it is the word of an attacker, and is asked about


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule: which calls it is about, and what it says of them."""

    tool: str = ANY_TOOL
    argv: tuple[str, ...] | None = None
    arguments: dict[str, str] | None = None
    action: Action | None = None
    approver: Approver | None = None
    not_requester: bool = False
    signed: bool = False
    effect: Effect | None = None
    expires_after: Milliseconds | None = None
    approvals: int | None = None
    approvers: tuple[str, ...] | None = None
    remind_after: Milliseconds | None = None
    escalate_to: tuple[str, ...] = ()
    # Where it holds if it lets pass; the workspace's root if it does not say
    dirs: tuple[str, ...] | None = None
    outside_sandbox: bool = False  # whether it lets a call leave the sandbox of its agent
    source: str = ""
    line: int = 0

    @property
    def loosens(self) -> bool:
        """Whether it lets something pass that would not without it; then it is matched strictly."""
        return self.action is Action.AUTO or self.effect is not None

    @property
    def tightens(self) -> bool:
        """Whether it asks or forbids; then it is matched generously."""
        is_about_asking = (
            self.approver is not None
            or self.not_requester
            or self.signed
            or self.expires_after is not None
            or self.approvals is not None
            or self.approvers is not None
            or self.remind_after is not None
        )
        return self.action in {Action.PROMPT, Action.NEVER} or is_about_asking

    @property
    def needs_people(self) -> bool:
        """Whether it says who may approve, or how many must."""
        return (self.approvals or 1) > 1 or self.approvers is not None

    @property
    def is_exact(self) -> bool:
        """Whether it leaves no word of a command open."""
        words = self.argv
        return (
            words is not None
            and REST not in words[-1:]
            and all(read_pattern(word).is_literal for word in words)
        )

    @property
    def trusts_a_path(self) -> bool:
        """Whether it names its program by a path, so that nothing else can stand in for it."""
        program = self.argv[0] if self.argv else ""
        return "/" in program and read_pattern(program).is_literal


class Index:
    """Finds the rules that match without looking at all of them.

    A tree over the words of their patterns.
    """

    def __init__(self, rules: Iterable[Rule], *, strictly: bool) -> None:
        self._strictly = strictly
        self._tools = _Node()
        self._paths: dict[str, set[str]] = {}  # by name: the programs that rules name by a path
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Rule) -> None:
        node = self._tools.below(rule.tool)
        if rule.argv is not None:
            if rule.trusts_a_path:
                program = read_pattern(rule.argv[0]).head
                self._paths.setdefault(program.rpartition("/")[2], set()).add(program)
            is_open = rule.argv[-1:] == (REST,)
            words = rule.argv[:-1] if is_open else rule.argv
            as_written = OptionEnd(words, (), is_open)
            for reading in [as_written] if self._strictly else rule_readings(rule.argv):
                end = node
                for word in reading.operands:
                    end = end.below(word)
                ends = end.with_more if reading.is_open else end.whole
                ends.append(_End(rule, reading.wanted))
        elif rule.arguments:
            key = min(rule.arguments)
            end = node.keyed.setdefault(key, _Node()).below(rule.arguments[key])
            end.whole.append(_End(rule))
        else:
            node.always.append(rule)

    def of_call(
        self, tool: str, arguments: Mapping[str, Json], *, holds_commands: bool
    ) -> Iterator[Rule]:
        """Yield the rules that match by the tool alone, or by its arguments."""
        for node in self._tools.fitting(tool, strictly=False):
            yield from node.always
            for key in node.keyed.keys() & arguments.keys():
                for found in node.keyed[key].fitting(
                    _text(arguments[key]), strictly=self._strictly
                ):
                    yield from (
                        end.rule
                        for end in found.whole
                        if self._fits(end.rule, arguments, holds_commands=holds_commands)
                    )

    def _fits(self, rule: Rule, arguments: Mapping[str, Json], *, holds_commands: bool) -> bool:
        wanted = rule.arguments or {}
        if self._strictly and holds_commands and not TEXT_KEYS.isdisjoint(wanted):
            return False
        return wanted.keys() <= arguments.keys() and all(
            read_pattern(pattern).matches(_text(arguments[key]), strictly=self._strictly)
            for key, pattern in wanted.items()
        )

    def programs_called(self, name: str) -> set[str]:
        """Return the programs of that name that rules name by their paths."""
        return self._paths.get(name, set())

    def programs_like(self, tool: str, glob: str) -> set[str]:
        """Return the programs that rules name and that a shell may find by a wildcard."""
        name = glob.rpartition("/")[2]
        wild = len(_WILD_RUNS.sub("", name))
        # Nothing but wildcards may be any program: such a text needs a person anyhow
        if not 0 < wild <= _MOST_WILD or not _LITERAL.search(name):
            return set()
        # Seldom needed: few commands have a wildcard where a program stands
        from fnmatch import translate

        wanted = re.compile(translate(name))
        return {
            program
            for root in self._tools.fitting(tool, strictly=False)
            for program in root.programs_with(name)
            if wanted.match(program.rpartition("/")[2])
        }

    def of_words(
        self, tool: str, words: Sequence[str], *, programs: Iterable[str] = ()
    ) -> Iterator[Rule]:
        """Yield the rules that match a command; its program may go by further names.

        Rules that ask or forbid also match where options stand between their words: `git push` is
        in `git -C . push`. An option that the rule itself names may stand anywhere, in any
        spelling.
        """
        roots = self._tools.fitting(tool, strictly=False)
        search = _Search(words[1:], strictly=self._strictly)
        for root in roots:
            yield from search.matching(root.with_more)
            yield from search.matching(root.whole) if not words else ()
        search.begin(roots, {*words[:1], *programs})
        for word in words[1:]:
            yield from search.go_on(word)
            if search.is_over:
                return
        yield from search.end()

    def anywhere_in(
        self, tool: str, words: Sequence[str], names_of: Callable[[str], Iterable[str]]
    ) -> Iterator[Rule]:
        """Yield the rules that match a command that may begin at any of these words.

        All beginnings are followed at once, so the work grows with the number of words only.
        """
        search = _Search(words, strictly=self._strictly)
        roots = self._tools.fitting(tool, strictly=False)
        for root in roots:
            yield from search.matching(root.with_more)
        for word in words:
            yield from search.go_on(word)
            search.begin(roots, names_of(word))
        yield from search.end()


class _End(msgspec.Struct, frozen=True):
    """A rule that ends at a place in the tree, and the options that it names."""

    rule: Rule
    wanted: tuple[WantedOption, ...] = ()


class _Search:
    """Follows words through the tree, from one beginning or from many."""

    def __init__(self, words: Sequence[str], *, strictly: bool) -> None:
        self._options = GivenOptions(words)
        self._strictly = strictly
        self._reached: dict[_Node, None] = {}  # where the last word was one of the rule's
        # Where it was an option, or its value, between two words of the rule
        self._passing: dict[_Node, None] = {}
        self._is_after_option = False

    @property
    def is_over(self) -> bool:
        """Whether no further word can lead anywhere."""
        return not (self._reached or self._passing)

    def matching(self, ends: "Iterable[_End]") -> Iterator[Rule]:
        """Yield the rules whose options are among the words."""
        for end in ends:
            if not end.wanted or self._options.has_all(end.wanted):
                yield end.rule

    def begin(self, roots: "Iterable[_Node]", names: Iterable[str]) -> None:
        """Take the last word for the program of a command, by each of its names."""
        fitting = (
            node
            for root in roots
            for name in names
            for node in root.fitting(name, strictly=self._strictly)
        )
        self._reached.update(dict.fromkeys(fitting))

    def go_on(self, word: str) -> Iterator[Rule]:
        """Follow the next word, and yield the rules that match whatever it is."""
        before = self._reached | self._passing
        for node in before:
            yield from self.matching(node.with_more)
        self._reached = {
            found: None for node in before for found in node.fitting(word, strictly=self._strictly)
        }
        if not self._strictly:
            # The word behind an option may be its value. Nobody knows which options of which
            # program have one.
            is_passed = is_option(word)
            self._passing = before if is_passed or self._is_after_option else {}
            self._is_after_option = is_passed and "=" not in word

    def end(self) -> Iterator[Rule]:
        """Yield the rules that match if no word follows but options."""
        for node in self._reached | self._passing:
            yield from self.matching(node.with_more)
            yield from self.matching(node.whole)


class _Node:
    """A place in the tree: what may follow, and the rules that end here."""

    __slots__ = ("always", "keyed", "literals", "open", "whole", "with_more")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.open: _Branches | None = None  # most words of most rules are literal
        self.keyed: dict[str, _Node] = {}
        self.always: list[Rule] = []
        self.whole: list[_End] = []
        self.with_more: list[_End] = []

    def below(self, text: str) -> "_Node":
        pattern = read_pattern(text)
        if pattern.is_literal:
            return self.literals.get(pattern.head) or self.literals.setdefault(
                pattern.head, _Node()
            )
        self.open = self.open or _Branches()
        return self.open.below(text, pattern)

    def programs_with(self, glob: str) -> Iterator[str]:
        """Yield the literal words that may fit a glob: those that begin as it does, if it says."""
        head = _HEAD.match(glob)
        start = head[0] if head else ""
        for word in self.literals:
            if word.rpartition("/")[2].startswith(start):
                yield word

    def fitting(self, word: str, *, strictly: bool) -> "list[_Node]":
        found = [self.literals[word]] if word in self.literals else []
        if self.open:
            found += [
                node
                for pattern, node in self.open.candidates(word)
                if pattern.matches(word, strictly=strictly)
            ]
        return found


_Branch = tuple[Pattern, _Node]


class _Branches:
    """What may follow by a pattern, filed by how its words begin, end, or what they contain."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._heads = _Shelf()
        self._tails = _Shelf()
        self._holding = _Shelf()
        self._any: list[_Branch] = []

    def below(self, text: str, pattern: Pattern) -> _Node:
        if text not in self._nodes:
            self._nodes[text] = _Node()
            self._file((pattern, self._nodes[text]))
        return self._nodes[text]

    def _file(self, branch: _Branch) -> None:
        pattern, _ = branch
        if pattern.head:
            self._heads.put(pattern.head, branch)
        elif pattern.tail:
            self._tails.put(pattern.tail, branch)
        elif pattern.core:
            self._holding.put(pattern.core, branch)
        else:
            self._any.append(branch)

    def candidates(self, word: str) -> Iterator[_Branch]:
        yield from self._heads.beginning(word)
        yield from self._tails.ending(word)
        for text in self._holding.texts_in(word):
            yield from self._holding.branches[text]
        yield from self._any


class _Shelf:
    """Patterns by a text that every word they match must have."""

    def __init__(self) -> None:
        self.branches: dict[str, list[_Branch]] = {}
        self.lengths: set[int] = set()

    def put(self, text: str, branch: _Branch) -> None:
        self.lengths.add(len(text))
        self.branches.setdefault(text, []).append(branch)

    def beginning(self, word: str) -> Iterator[_Branch]:
        for length in self.lengths:
            yield from self.branches.get(word[:length], ()) if length <= len(word) else ()

    def ending(self, word: str) -> Iterator[_Branch]:
        for length in self.lengths:
            yield from self.branches.get(word[-length:], ()) if length <= len(word) else ()

    def texts_in(self, word: str) -> set[str]:
        """Return the texts that a word holds, by whichever way is shorter.

        Through its parts, or through the texts.
        """
        if len(word) * len(self.lengths) > len(self.branches):
            return {text for text in self.branches if text in word}
        parts = {
            word[at : at + length]
            for length in self.lengths
            for at in range(len(word) - length + 1)
        }
        return parts & self.branches.keys()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical(value).decode()
