"""How a policy judges a call.

Command by command, strictly where something is let pass, generously where it is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec

from adjourn.core.ask import Approver, Terms
from adjourn.core.call import Json, canonical
from adjourn.core.people import Person, resolve
from adjourn.core.policy.commands import (
    Step,
    all_steps,
    named_commands,
    named_programs,
    possible_commands,
    possible_programs,
    steps_of,
)
from adjourn.core.policy.judgement import (
    NO_RULE_LETS,
    NO_RULES,
    Action,
    Effect,
    Judgement,
    strictest,
)
from adjourn.core.policy.locations import (
    directory_of,
    joined,
    leaves_sandbox,
    matches_directory,
    moves_in,
    named_files,
    relative,
)
from adjourn.core.policy.opening import NOTHING_SEEN, Surroundings
from adjourn.core.policy.pattern import REST, read_pattern
from adjourn.core.policy.policy import Allowance, Policy
from adjourn.core.policy.rule import Index, Rule
from adjourn.core.policy.shell import Words
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import visible
from adjourn.core.text.when import span, stamp

_NO_RULE = Judgement(why=(NO_RULES,), is_default=True)
_ACTIONS = tuple(Action)
_EFFECTS: tuple[Effect, ...] = tuple(Effect)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What rules say of one command of a call, or of a call that is no command."""

    step: Step | None
    loosening: tuple[Rule, ...]
    is_auto: bool
    effect: Effect
    doubts: tuple[str, ...] = ()
    # A program of it, or of what it starts, may be another than the rules mean
    is_strange: bool = False
    depth: int = 0


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement, and all that led to it."""

    judgement: Judgement
    findings: tuple[Finding, ...]
    tightening: tuple[Rule, ...]
    allowance: Allowance | None = None


def judge(
    policy: Policy,
    tool: str,
    arguments: Mapping[str, Json],
    *,
    surroundings: Surroundings = NOTHING_SEEN,
    workspace: str,
    task: str | None = None,
    now: Milliseconds,
) -> Judgement:
    """Return whether a call may run, who may let it, and on which terms."""
    if not policy.rules and not policy.allowances:
        return _NO_RULE
    return explain(
        policy,
        tool,
        arguments,
        surroundings=surroundings,
        workspace=workspace,
        task=task,
        now=now,
    ).judgement


def judge_since(
    snapshot: Policy,
    current: Policy,
    tool: str,
    arguments: Mapping[str, Json],
    *,
    surroundings: Surroundings = NOTHING_SEEN,
    workspace: str,
    task: str,
    now: Milliseconds,
) -> Judgement:
    """Judge for a task that began under a snapshot: the stricter of both policies counts.

    Only an always-allow rule that names this very task counts though it came later.
    """
    for_the_task = tuple(each for each in current.allowances if each.task == task)
    then = (
        msgspec.structs.replace(snapshot, allowances=(*snapshot.allowances, *for_the_task))
        if for_the_task
        else snapshot
    )
    judgements = (
        judge(
            policy,
            tool,
            arguments,
            surroundings=surroundings,
            workspace=workspace,
            task=task,
            now=now,
        )
        for policy in (then, current)
    )
    return strictest(*judgements)


def explain(
    policy: Policy,
    tool: str,
    arguments: Mapping[str, Json],
    *,
    surroundings: Surroundings = NOTHING_SEEN,
    workspace: str,
    task: str | None = None,
    now: Milliseconds,
) -> Explanation:
    """Judge a call, and say what led to it."""
    case = _Case(policy, tool, arguments, surroundings=surroundings, workspace=workspace)
    return _concluded(policy, case, case.allowance(task=task, now=now))


def allowed_call(tool: str, arguments: Mapping[str, Json]) -> bytes:
    """Return what an always-allow rule compares.

    Of a command its words, of any other call all arguments.
    """
    step = steps_of(tool, arguments)
    decides = {"argv": arguments["argv"]} if step and "argv" in arguments else dict(arguments)
    return canonical({"arguments": decides, "tool": tool})


def rule_gist(rule: Rule) -> str:
    """Write a rule on one line, as a person may safely see it."""
    words = "" if rule.argv is None else " " + " ".join(_shown_word(word) for word in rule.argv)
    table = "".join(
        f" {visible(key)}={_shown_word(text)}"
        for key, text in sorted((rule.arguments or {}).items())
    )
    says = [rule.action.value if rule.action else "", *_attributes(rule)]
    return f"{visible(rule.tool)}{words}{table}: {', '.join(filter(None, says))}"


def rule_place(rule: Rule) -> str:
    """Say where a rule stands."""
    return f"{visible(rule.source)}:{rule.line}"


def _shown_word(word: str) -> str:
    shown = visible(word)
    return shown if shown and " " not in shown else f'"{shown}"'


def _attributes(rule: Rule) -> Iterator[str]:
    if rule.approver is not None:
        yield f"approver {rule.approver}"
    if rule.not_requester:
        yield "not the requester"
    if rule.signed:
        yield "signed"
    if rule.effect is not None:
        yield f"effect {rule.effect}"
    if rule.dirs is not None:
        yield f"in {' '.join(_shown_word(each) for each in rule.dirs)}"
    if rule.outside_sandbox:
        yield "outside of the sandbox"
    if rule.expires_after is not None:
        yield f"expires after {span(rule.expires_after)}"
    if rule.approvals is not None:
        yield f"{rule.approvals} {'approval' if rule.approvals == 1 else 'approvals'}"
    if rule.approvers is not None:
        yield f"approvers {' '.join(map(visible, rule.approvers))}"
    if rule.remind_after is not None:
        yield f"reminds after {span(rule.remind_after)}"
    if rule.escalate_to:
        yield f"escalates to {' '.join(map(visible, rule.escalate_to))}"


# --- one call -------------------------------------------------------------------------------------


class _Case:
    """One call before a policy."""

    def __init__(
        self,
        policy: Policy,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        surroundings: Surroundings,
        workspace: str,
    ) -> None:
        self.policy = policy
        self.tool = tool
        self.arguments = arguments
        self.surroundings = surroundings
        self.workspace = workspace
        self.step = steps_of(tool, arguments)
        self.directory = directory_of(tool, arguments, workspace=workspace)
        self.leaves_sandbox = leaves_sandbox(tool, arguments)
        self.findings: list[Finding] = []

    def allowance(self, *, task: str | None, now: Milliseconds) -> Allowance | None:
        """Return an always-allow rule that holds here and now."""
        if not self.policy.allowances:
            return None
        candidates = self.policy.allowed.get(allowed_call(self.tool, self.arguments), ())
        return next((each for each in candidates if self._holds(each, task=task, now=now)), None)

    def _holds(self, each: Allowance, *, task: str | None, now: Milliseconds) -> bool:
        is_in_scope = each.task == task if each.task else each.workspace == self.workspace
        found = {
            name: where
            for name in possible_programs(self.tool, self.arguments)
            if (where := self.where(name))
        }
        is_the_same = found == each.programs and self.surroundings.content == each.files
        return is_in_scope and now < each.until and is_the_same

    @property
    def is_command(self) -> bool:
        return self.step is not None

    @property
    def unread(self) -> tuple[str, ...]:
        """What keeps the call from being auto, whatever the rules say."""
        return (
            tuple(why for step in all_steps(self.step) for why in step.unread) if self.step else ()
        )

    def tightening(self) -> tuple[Rule, ...]:
        """Return the rules that ask or forbid, matched by whatever may be a command in it."""
        index = self.policy.generous
        found = {id(rule): rule for views in self._views() for rule in self._of_views(index, views)}
        for words in named_commands(self.step) if self.step else ():
            found |= {
                id(rule): rule
                for rule in index.of_words(self.tool, words, programs=self._names_of(words[:1]))
            }
        for words in possible_commands(self.step) if self.step else ():
            found |= {
                id(rule): rule
                for rule in index.anywhere_in(self.tool, words, cache(self._possible_names))
            }
        return tuple(found.values())

    def _names_of(self, words: tuple[str, ...]) -> Iterator[str]:
        """Yield the further names of a program: without its directory, and where it really is."""
        for word in words:
            resolved = self.where(word)
            for name in (word, *([resolved] if resolved else ())):
                yield from (name, name.rpartition("/")[2])

    def _possible_names(self, word: str) -> frozenset[str]:
        """Return the names of a word that may be a program.

        Where nobody looked for it, it may be any of that name.
        """
        names = set(self._names_of((word,)))
        if self.where(word) is None:
            names |= self.policy.generous.programs_called(word.rpartition("/")[2])
        names |= self.policy.generous.programs_like(self.tool, word)
        return frozenset(names)

    def where(self, program: str) -> str | None:
        """Return where a program was found, if anybody looked."""
        if program in self.surroundings.programs:
            return self.surroundings.programs[program]
        is_outermost = self.step is not None and self.step.words[:1] == (program,)
        return self.surroundings.program if is_outermost else None

    def _views(self) -> list[list[Mapping[str, Json]]]:
        """Return the arguments as rules may name them: each file by its path, and by its real path.

        A real path is written in several ways: from the root, and from the workspace.
        """
        views: list[list[Mapping[str, Json]]] = []
        root = self.surroundings.real.get(self.workspace, self.workspace)
        for key, given in named_files(self.tool, self.arguments):
            views.append([{**self.arguments, key: given}])
            real = self.surroundings.real.get(joined(self.directory or self.workspace, given))
            if real is not None:
                inside = relative(real, root)
                paths = [real, *([inside, joined(self.workspace, inside)] if inside else ())]
                views.append([{**self.arguments, key: path} for path in paths])
        return views or [[self.arguments]]

    def _of_views(self, index: Index, views: list[Mapping[str, Json]]) -> Iterator[Rule]:
        for arguments in views:
            yield from index.of_call(self.tool, arguments, holds_commands=self.is_command)

    def _letting_pass(self) -> tuple[Rule, ...]:
        """Return the rules that let the call pass by its tool and arguments.

        Whatever file it names, by both of its paths.
        """
        found = [
            {id(rule): rule for rule in self._of_views(self.policy.strict, views)}
            for views in self._views()
        ]
        return tuple(
            rule for number, rule in found[-1].items() if all(number in each for each in found)
        )

    def find(self) -> Finding:
        """Return what the rules that let pass say of the whole call."""
        by_call = self._letting_pass()
        if self.step is None:
            rules, doubts = self._holding(by_call, ())
            doubts = () if _allows(rules) else doubts
            finding = Finding(
                step=None,
                loosening=rules,
                is_auto=_allows(rules),
                effect=_effect(rules),
                doubts=doubts,
            )
            self.findings.append(finding)
            return finding
        return self._find_step(self.step, by_call)

    def _find_step(self, step: Step, by_call: tuple[Rule, ...], *, depth: int = 0) -> Finding:
        at = len(self.findings)
        matching = (
            (*by_call, *self.policy.strict.of_words(self.tool, step.words))
            if step.words
            else by_call
        )
        rules, elsewhere = self._holding(matching, step.words, unnamed=step.unnamed)
        hidden = self._hidden(step)
        stranger = hidden or self._stranger(step)
        trusted = tuple(
            rule for rule in rules if not stranger or (rule.trusts_a_path and not hidden)
        )
        inner = [self._find_step(each, by_call, depth=depth + 1) for each in step.inner]
        doubts = (
            *(() if trusted or not stranger else (stranger,)),
            *(() if step.is_shell or _allows(trusted) else elsewhere),
        )
        finding = _settled(
            step, trusted, inner, stranger="" if trusted else stranger, doubts=doubts
        )
        self.findings.insert(at, msgspec.structs.replace(finding, depth=depth))
        return finding

    def _holding(
        self, rules: Sequence[Rule], words: Words, *, unnamed: Sequence[tuple[int, str]] = ()
    ) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
        """Return the rules that let pass here, and why the others do not."""
        directories: list[tuple[int, str | None]] = [(-1, self.directory)]
        if self.directory is not None and words:
            directories += [
                (at, path and joined(self.directory, path)) for at, path in moves_in(words)
            ]
        holding: list[Rule] = []
        doubts: list[str] = []
        for rule in rules:
            wrong = [
                each
                for at, each in directories
                if not _names(rule, at) and not self._holds_in(rule, each)
            ]
            if wrong:
                where = "a directory that nobody knows" if wrong[0] is None else visible(wrong[0])
                meant = (
                    " ".join(map(_shown_word, rule.dirs)) if rule.dirs else "the workspace's root"
                )
                doubts.append(
                    f"{rule_place(rule)} holds in {meant} only, and this would run in {where}"
                )
            elif self.leaves_sandbox and not rule.outside_sandbox:
                doubts.append(f"{rule_place(rule)} lets nothing run outside of the sandbox")
            elif lacking := [why for at, why in unnamed if not _names(rule, at)]:
                doubts.append(lacking[0])
            else:
                holding.append(rule)
        return tuple(holding), tuple(dict.fromkeys(doubts))

    def _holds_in(self, rule: Rule, directory: str | None) -> bool:
        """Say whether a rule that lets pass was meant for a directory.

        What counts is where that really is.
        """
        if directory == self.workspace and rule.dirs is None:
            return True
        real = self.surroundings.real.get(directory) if directory is not None else None
        root = self.surroundings.real.get(self.workspace, self.workspace)
        if real is None and directory != self.workspace:
            return rule.dirs is not None and "/**" in rule.dirs
        return any(
            matches_directory(pattern, real or root, workspace=root)
            for pattern in rule.dirs or (".",)
        )

    def _stranger(self, step: Step) -> str:
        """Say why a program may not be the one that a bare name means, if so."""
        if not step.words:
            return ""
        if self.where(step.words[0]) is None:
            return f"where {visible(step.words[0])} is was not found out"
        root = self.surroundings.root or self.workspace
        for word in named_programs(step):
            if _is_inside(self.where(word), root):
                return f"{visible(word)} is {visible(self.where(word) or '')}, inside the workspace"
            if word in self.surroundings.near:
                where = visible(self.where(word) or "")
                return (
                    f"{visible(word)} is {where}, by a path from the directory that it would run in"
                )
            for reader in self.surroundings.readers.get(word, ()):
                if _is_inside(reader, root):
                    return (
                        f"{visible(word)} is a script for {visible(reader)}, inside the workspace"
                    )
        return ""

    def _hidden(self, step: Step) -> str:
        """Say why another program than the named one may run: `env` searches PATH."""
        seen, root = self.surroundings, self.surroundings.root or self.workspace
        for word in named_programs(step):
            for reader in seen.searched.get(word, ()):
                if _is_inside(reader, root):
                    return (
                        f"{visible(word)} is a script for {visible(reader)}, inside the workspace"
                    )
            if word in seen.doubts:
                return f"{visible(word)} is a script, and {visible(seen.doubts[word])}"
        return ""


def _is_inside(path: str | None, directory: str) -> bool:
    if path is None:
        return False
    return (
        not path.startswith("/")
        or path == directory
        or path.startswith(directory.rstrip("/") + "/")
    )


def _names(rule: Rule, at: int) -> bool:
    """Say whether a rule names the word at a place itself, by no wildcard."""
    words = rule.argv or ()
    return 0 <= at < len(words) and words[at] != REST and read_pattern(words[at]).is_literal


def _settled(
    step: Step,
    rules: tuple[Rule, ...],
    inner: list[Finding],
    *,
    stranger: str,
    doubts: tuple[str, ...],
) -> Finding:
    """Put together what a command's own rules say and what is said of those that it starts."""
    is_strange = bool(stranger) or any(each.is_strange for each in inner)
    exact = () if is_strange or step.unread else tuple(rule for rule in rules if rule.is_exact)
    is_known = not (step.unread or step.unsure or stranger)
    is_let = bool(inner) if step.is_shell else _allows(rules)
    return Finding(
        step=step,
        loosening=rules,
        is_auto=_allows(exact) or (is_known and is_let and all(each.is_auto for each in inner)),
        effect=_effect_of_parts(step, rules, exact, inner, is_known=is_known),
        doubts=(*step.unread, *step.unsure, *doubts),
        is_strange=is_strange,
    )


def _effect_of_parts(
    step: Step,
    rules: tuple[Rule, ...],
    exact: tuple[Rule, ...],
    inner: list[Finding],
    *,
    is_known: bool,
) -> Effect:
    if _effect(exact) is not Effect.UNKNOWN:
        return _effect(rules)
    if not is_known or (step.is_shell and not inner):
        return Effect.UNKNOWN
    effects = [each.effect for each in inner]
    return max(effects if step.is_shell else [_effect(rules), *effects], key=_EFFECTS.index)


def _allows(rules: tuple[Rule, ...]) -> bool:
    return any(rule.action is Action.AUTO for rule in rules)


def _effect(rules: tuple[Rule, ...]) -> Effect:
    """Return the strictest effect that rules agree on; where none speaks, nobody knows."""
    said = [rule.effect for rule in rules if rule.effect is not None]
    return max(said, key=_EFFECTS.index) if said else Effect.UNKNOWN


# --- the conclusion -------------------------------------------------------------------------------


def _concluded(policy: Policy, case: _Case, allowance: Allowance | None) -> Explanation:
    finding, tightening = case.find(), case.tightening()
    terms = Terms(
        approver=Approver.HUMAN
        if any(rule.approver is Approver.HUMAN for rule in tightening)
        else Approver.ANY,
        not_requester=any(rule.not_requester for rule in tightening),
        signed=any(rule.signed for rule in tightening),
        approvals=max((rule.approvals or 1 for rule in tightening), default=1),
        people=_people(policy, tightening),
    )
    allowance = allowance if terms == Terms() and not case.unread else None
    action = _action(
        tightening, is_auto=finding.is_auto and not case.unread, is_allowed=allowance is not None
    )
    judgement = Judgement(
        action=action,
        never=policy.never,
        effect=_least(finding.effect, tightening),
        terms=msgspec.structs.replace(
            terms, by_name=action is Action.NEVER, override=action is Action.NEVER
        ),
        expires_after=min(
            (rule.expires_after for rule in tightening if rule.expires_after is not None),
            default=None,
        ),
        remind_after=min(
            (rule.remind_after for rule in tightening if rule.remind_after is not None),
            default=None,
        ),
        escalate_to=tuple(dict.fromkeys(name for rule in tightening for name in rule.escalate_to)),
        why=_why(action, case, tightening, allowance),
        is_default=action is Action.PROMPT
        and not any(rule.action is Action.PROMPT for rule in tightening),
    )
    return Explanation(
        judgement=judgement,
        findings=tuple(case.findings),
        tightening=tightening,
        allowance=allowance,
    )


def _people(policy: Policy, tightening: tuple[Rule, ...]) -> tuple[Person, ...] | None:
    """Return whose approvals count: those whom every rule names that names somebody.

    Where several approvals are needed and no rule says whose, everybody of the config's people.
    """
    if not any(rule.needs_people for rule in tightening):
        return None
    found: tuple[Person, ...] = tuple(sorted(policy.people, key=lambda person: person.name))
    for rule in tightening:
        if rule.approvers is not None:
            named = resolve(rule.approvers, policy.people, policy.teams)
            found = tuple(person for person in found if person in named)
    return found


def _action(tightening: tuple[Rule, ...], *, is_auto: bool, is_allowed: bool) -> Action:
    strictest_rule = max(
        (rule.action for rule in tightening if rule.action), key=_ACTIONS.index, default=Action.AUTO
    )
    if strictest_rule is Action.NEVER:
        return Action.NEVER
    if is_allowed:
        return Action.AUTO
    return Action.PROMPT if strictest_rule is Action.PROMPT or not is_auto else Action.AUTO


def _least(effect: Effect, tightening: tuple[Rule, ...]) -> Effect:
    said = [rule.effect for rule in tightening if rule.effect is not None]
    return effect if effect is Effect.UNKNOWN else max([effect, *said], key=_EFFECTS.index)


def _why(
    action: Action, case: _Case, tightening: tuple[Rule, ...], allowance: Allowance | None
) -> tuple[str, ...]:
    """Name what decided: the rules of the action that won, else what was missing for auto.

    Then the rules that set terms.
    """
    setting = [
        rule
        for rule in tightening
        if rule.action is not Action.NEVER and rule.action is not Action.PROMPT
    ]
    if allowance and action is Action.AUTO:
        decided = [f"always-allow rule {allowance.id}, until {stamp(allowance.until)}"]
    elif action is Action.AUTO:
        decided = [
            _cited(rule)
            for finding in case.findings
            for rule in finding.loosening
            if rule.action is Action.AUTO
        ]
    else:
        decided = [_cited(rule) for rule in tightening if rule.action is action] or _missing(case)
    return tuple(dict.fromkeys([*decided, *(_cited(rule) for rule in setting)]))


def _cited(rule: Rule) -> str:
    return f"{rule_place(rule)}: {rule_gist(rule)}"


def _missing(case: _Case) -> list[str]:
    lacking = [finding for finding in case.findings if not finding.is_auto]
    doubts = [doubt for finding in lacking for doubt in finding.doubts]
    return doubts or [
        f"{NO_RULE_LETS}{_name(finding, case)} run by itself"
        for finding in lacking
        if not _is_held_up(finding)
    ]


def _is_held_up(finding: Finding) -> bool:
    """Say whether only something that it starts keeps a command from running by itself."""
    return (
        finding.step is not None
        and (finding.step.is_shell or _allows(finding.loosening))
        and bool(finding.step.inner)
    )


def _name(finding: Finding, case: _Case) -> str:
    return (
        visible(finding.step.words[0])
        if finding.step and finding.step.words
        else visible(case.tool)
    )
