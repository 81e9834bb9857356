"""The one layout of a task and its asks: how it stands, what would run, and what to do next."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import assert_never

from adjourn.core.agent.calls import Report, files_of
from adjourn.core.ask import (
    LATER,
    NO_REASON,
    RESUME_KEY,
    ApprovalAsk,
    Approver,
    Ask,
    AskReason,
    QuestionAsk,
    Terms,
    UncertainAsk,
    Verdict,
    expiry_of,
    is_review,
)
from adjourn.core.call import COMMAND, Call, arguments_of, command_of, digest_of
from adjourn.core.diffstat import diffstat_lines
from adjourn.core.documents import ClarificationDoc, is_resumable
from adjourn.core.edit.edit import difference
from adjourn.core.policy.commands import steps_of
from adjourn.core.policy.judgement import SAYS_NEVER
from adjourn.core.policy.locations import uncovered
from adjourn.core.policy.opening import differences, unpinned
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import WHOLE, Cut, argv_lines, prose, shortened, visible
from adjourn.core.text.when import ago, span, stamp
from adjourn.core.trail.events import Event
from adjourn.views.agent import usage_words
from adjourn.views.block import (
    BLANK,
    AgentWords,
    Block,
    Code,
    CommandBlock,
    CommandWriter,
    Fields,
    Id,
    Line,
    Role,
    Span,
    line,
    lines,
    state_role,
)
from adjourn.views.call import call_blocks, unmade_blocks, unmade_words
from adjourn.views.file_change import difference_lines, role_of_line

_INDENT = "  "
_MARGIN = 4  # columns that an agent's words leave free
_NEVER_COVERED = (
    "files that its program opens itself",
    "directory contents",
    "its environment",
    "the network",
)
_DIGITS = 16  # of a digest
_SHORT = 8  # characters of an id or a digest, for the eye
_RECENT = 12  # events
_IDENTIFIERS = frozenset({"ask", "digest", "replaces", "shown", "policy", "checkpoint"})
_HEADLINES = {
    TaskState.SUCCEEDED: "Completed.",
    TaskState.CANCELED: "Canceled.",
    TaskState.QUEUED: "Queued: it has not started.",
    TaskState.RUNNING: "Running.",
}


def resume_hint(scene: Scene, commands: CommandWriter) -> str:
    """Return one command that goes on headless, exactly as printed."""
    task, run, asks = scene.task, scene.run, scene.open_asks
    checkpoint = (run.checkpoint_id if run else None) or task.id
    match task.state:
        case TaskState.PAUSED if _can_go_on(scene):
            return commands("-c", checkpoint, *_flags(scene))
        case TaskState.QUEUED:
            return commands("resume", task.id)
        case TaskState.RUNNING:
            return commands("wait", task.id)
        case TaskState.PAUSED | TaskState.FAILED | TaskState.CANCELED | TaskState.SUCCEEDED:
            return commands("restart", task.id)
        case TaskState.WAITING:
            pass

    if any(isinstance(ask, UncertainAsk) for ask in asks):
        return commands("show", task.id)  # a person must say whether it ran
    if approvals := [ask for ask in asks if isinstance(ask, ApprovalAsk)]:
        # An agent of others names its own calls, which are not ours
        if any(ask.key == RESUME_KEY and not ask.terms.override for ask in approvals):
            return commands("-c", checkpoint, "--approve-all")
        # What the policy never allows is not approved by pasting a hint
        flags = [
            word
            for ask in approvals
            for word in ("--reject" if ask.terms.override else "--approve", ask.tool_call_id)
        ]
        return commands("-c", checkpoint, *flags)
    questions = [ask for ask in asks if isinstance(ask, QuestionAsk)]
    if len(questions) == 1:
        return commands("-c", checkpoint, *_as_argument(_example(questions[0])))
    if questions:
        answers = [
            word for ask in questions for word in ("--answer", f"{ask.name}={_example(ask)}")
        ]
        return commands("-c", checkpoint, *answers)
    return commands("show", *(scene.waiting_on[:1] or [task.id]))


def next_step(scene: Scene, commands: CommandWriter, *, has_worker: bool = False) -> list[Block]:
    """Lay out how to go on by the shortest way, one command for each possibility.

    Where a worker is alive for the task, a decision is all that it needs.
    """
    task, asks = scene.task, scene.open_asks
    match task.state:
        case TaskState.WAITING:
            is_review_open = any(map(is_review, asks))
            resumes = not has_worker and can_resume_at_once(scene)
            blocks: list[Block] = []
            covered = [ask for ask in asks if isinstance(ask, ApprovalAsk) and _is_covered(ask)]
            if len(asks) > 1 and len(covered) == len(asks):
                everything = commands("resume", Id(task.id), "--approve-all")
                blocks.append(CommandBlock("Approve all:  ", everything))
            for ask in asks:
                digest = _digest_if_edited(ask, scene)
                blocks += settling_blocks(ask, commands, digest=digest, resumes=resumes)
            blocks += [
                CommandBlock("Look at it:   ", commands("show", Id(child)))
                for child in scene.waiting_on
            ]
            if not blocks or any(isinstance(ask, UncertainAsk) for ask in asks):
                return blocks
            # Once all is settled: with the plan where the task's own work is done
            if is_review_open and task.spec.plan:
                blocks.append(CommandBlock("Then:         ", commands("execute", task.spec.plan)))
            elif has_worker:
                blocks.append(line("Then:         a worker goes on with it, by itself"))
            elif not resumes:
                blocks.append(CommandBlock("Then:         ", commands("resume", Id(task.id))))
            return blocks
        case TaskState.PAUSED:
            first: Block = (
                CommandBlock("Resume with: ", commands("resume", Id(task.id), *_flags(scene)))
                if _can_go_on(scene)
                else line("It cannot be resumed: its agent had saved nothing yet.")
            )
            return [first, CommandBlock("Restart with: ", commands("restart", Id(task.id)))]
        case TaskState.QUEUED if has_worker:
            follow = commands("wait", Id(task.id))
            return [line("A worker starts it, by itself."), CommandBlock("Wait with:    ", follow)]
        case TaskState.QUEUED:
            return [CommandBlock("Start with:   ", commands("resume", Id(task.id)))]
        case TaskState.RUNNING:
            return [CommandBlock("Wait with:    ", commands("wait", Id(task.id)))]
        case TaskState.FAILED | TaskState.CANCELED:
            return [CommandBlock("Restart with: ", commands("restart", Id(task.id)))]
        case TaskState.SUCCEEDED:
            return []


def can_resume_at_once(scene: Scene) -> bool:
    """Return whether one command both settles the last open ask and goes on with the task."""
    if len(scene.open_asks) != 1:
        return False
    ask = scene.open_asks[0]
    # A review ends with its plan, and one of several approvals settles nothing
    is_counted = isinstance(ask, ApprovalAsk) and ask.terms.is_counted
    return not (is_counted or is_review(ask) or isinstance(ask, UncertainAsk))


def _is_covered(ask: ApprovalAsk) -> bool:
    """Return whether `--approve-all` approves it."""
    terms = ask.terms
    return not (terms.by_name or terms.override or terms.signed or terms.is_counted)


def settling_blocks(
    ask: Ask, commands: CommandWriter, *, digest: str | None = None, resumes: bool = False
) -> list[Block]:
    """Lay out how one ask is settled, and how its task goes on by the same command if it `resumes`.

    `digest` is that of an open call that was edited.
    """
    on = ("--resume",) if resumes else ()
    match ask:
        case ApprovalAsk() if ask.terms.override:
            overriding = commands("approve", Id(ask.id), "--override", "why it must run", *on)
            return [
                CommandBlock("Reject with:  ", commands("reject", Id(ask.id), *on)),
                CommandBlock("Or override:  ", overriding),
            ]
        case ApprovalAsk():
            # Of a call that somebody edited, an approval says which bytes it is for
            edited = ("--digest", digest[:_DIGITS]) if digest else ()
            return [
                CommandBlock("Approve with: ", commands("approve", Id(ask.id), *edited, *on)),
                CommandBlock("Reject with:  ", commands("reject", Id(ask.id), *on)),
            ]
        case QuestionAsk():
            text = _example(ask)
            words = (*on, "--", text) if text.startswith("-") else (text, *on)
            answer = commands("answer", Id(ask.id), *words)
            return [CommandBlock("Answer with:  ", answer)]
        case UncertainAsk():
            call = f"{ask.task_id}.{ask.tool_call_id}"
            return [
                CommandBlock("If it ran:     ", commands("settle", call, Verdict.IT_RAN)),
                CommandBlock("If it did not: ", commands("settle", call, Verdict.IT_DID_NOT)),
                CommandBlock("To run again:  ", commands("settle", call, Verdict.RUN_AGAIN)),
            ]
        case _:
            assert_never(ask)


def _digest_if_edited(ask: Ask, scene: Scene) -> str | None:
    call = scene.call_of(ask)
    return call.digest if call and scene.original_of(ask) is not None else None


def _can_go_on(scene: Scene) -> bool:
    """Return whether a paused task has a run to go on from."""
    return scene.run is None or is_resumable(scene.task, scene.run)


def _flags(scene: Scene) -> tuple[str, ...]:
    """Return the options with which a paused task gets past the limit that stopped it."""
    return scene.report.resume_with if scene.report else ()


def _example(ask: QuestionAsk) -> str:
    return ask.choices[0] if ask.choices else "your answer"


def _as_argument(text: str) -> tuple[str, ...]:
    """Keep a text from being taken for an option."""
    return ("--", text) if text.startswith("-") else (text,)


def ask_blocks(ask: Ask, scene: Scene, *, now: int, cut: Cut) -> list[Block]:
    """Lay out one ask: what would run, byte for byte, on which terms, and the agent's own words."""
    blocks: list[Block] = [
        line(
            Span(ask.kind, state_role(ask.kind)),
            " ",
            Span(ask.id, "id"),
            f"  {ago(ask.created_at, now=now)}",
        )
    ]
    call = scene.call_of(ask)
    if call is not None:
        blocks += _why_blocks(scene.why.get(ask.id, NO_REASON), cut=cut)
        blocks += call_blocks(call, cut=cut, copies=scene.copies.get(ask.id))
        original = scene.original_of(ask) if ask.is_open else None
        if original is not None:  # somebody edited it, and others still have to approve that
            blocks += edit_blocks(call, original, cut=cut)
    match ask:
        case ApprovalAsk():
            blocks += lines(_details(ask, scene, now=now, cut=cut), indent=_INDENT)
            if ask.replaces:
                replaced = Span(ask.replaces, "id")
                blocks.append(line(f"{_INDENT}replaces ask ", replaced, ", which was withdrawn"))
                blocks += _replaced_blocks(ask, scene, cut=cut)
            if ask.manifest:
                blocks += [line(f"{_INDENT}in its own words:"), _words(ask.manifest, cut)]
        case QuestionAsk():
            # A review is asked by adjourn itself
            blocks.append(
                line(f"{_INDENT}{prose(ask.prompt)}") if ask.review else _words(ask.prompt, cut)
            )
            if ask.choices:
                choices = " | ".join(visible(choice) for choice in ask.choices)
                blocks.append(line(f"{_INDENT}choose: {choices}"))
            blocks += lines(_details(ask, scene, now=now, cut=cut), indent=_INDENT)
            if ask.review and scene.changes:
                blocks += lines(diffstat_lines(scene.changes), indent=_INDENT)
        case UncertainAsk():
            if call is not None:
                blocks.append(line(f"{_INDENT}{prose(ask.prompt)}"))
            blocks += lines(_details(ask, scene, now=now, cut=cut), indent=_INDENT)
        case _:
            assert_never(ask)
    return blocks


def _why_blocks(why: AskReason, *, cut: Cut) -> Iterator[Block]:
    """Lay out why a person is asked: before all else, what a rule says or what the program did."""
    for number, reason in enumerate(why.reasons):
        role: Role = "danger" if not number and reason.startswith(SAYS_NEVER) else "plain"
        yield line(_INDENT, Span(prose(reason), role))
    if why.last_lines:
        yield line(f"{_INDENT}its last lines:")
        yield _words(why.last_lines, cut)


def edit_blocks(call: Call, original: bytes, *, cut: Cut) -> list[Block]:
    """Lay out how a call differs from what was asked for."""
    head = line(f"    edited from sha256 {digest_of(original)[:16]}:")
    changes = difference(call.tool, original, call.body)
    return [head, *difference_blocks(changes, indent="      ", cut=cut)]


def difference_blocks(changes: list[str], *, indent: str, cut: Cut) -> list[Block]:
    """Lay out the lines that two calls differ in, and say how many are left out."""
    shown = changes[: cut.lines]
    blocks: list[Block] = [line(indent, Span(text, role_of_line(text))) for text in shown]
    if rest := len(changes) - len(shown):
        blocks.append(line(f"{indent}… {rest:,} more lines. The rest: {cut.rest}"))
    return blocks


def terms_lines(terms: Terms) -> Iterator[str]:
    """Say what an approval needs to count."""
    needs = [
        words
        for words, is_needed in (
            ("a human", terms.approver is Approver.HUMAN),
            ("somebody else than who started the task", terms.not_requester),
            ("a signature (approve --sign KEY)", terms.signed),
            ("a reason to override your policy (approve --override REASON)", terms.override),
            ("to be named (--approve-all does not cover it)", terms.by_name and not terms.override),
        )
        if is_needed
    ]
    if needs:
        yield f"an approval needs {', '.join(needs)}"


def _words(text: str, cut: Cut) -> AgentWords:
    return AgentWords(text=text, cut=cut, indent=_INDENT, margin=_MARGIN)


def _details(ask: Ask, scene: Scene, *, now: int, cut: Cut) -> Iterator[str]:
    """Say all that there is to know of an open ask, a line for each thing."""
    if isinstance(ask, ApprovalAsk) and ask.gate:
        yield "nothing has run yet: it asks whether this command may start"
    if call := scene.call_of(ask):
        yield from _limits_of_approval(call, workspace=scene.task.spec.workspace, cut=cut)
    if isinstance(ask, ApprovalAsk):
        yield from terms_lines(ask.terms)
        if ask.count_words:
            yield ask.count_words
        if ask.remind_at is not None and ask.remind_at > now:
            yield f"a reminder is sent in {span(ask.remind_at - now)}, at {stamp(ask.remind_at)}"
    if (end := expiry_of(ask)) is not None:
        when = f"in {span(end - now)}" if end > now else "now"
        yield f"expires {when}, at {stamp(end)}: expired is rejected"
    if ask.is_snoozed(now) and ask.snoozed_until is not None:
        yield f"snoozed until {stamp(ask.snoozed_until)}"
    if isinstance(ask, ApprovalAsk) and ask.replaces and ask.prompt.startswith(LATER):
        yield LATER


def _limits_of_approval(call: Call, *, workspace: str, cut: Cut) -> Iterator[str]:
    """Say what an approval of a call does not hold fast."""
    arguments = arguments_of(call.body)
    files = _files_of(call)
    left = unpinned(files)
    names = [path.rpartition("/")[2] for path in left]
    if left and cut != WHOLE and len(set(names)) == len(names):  # their paths stand above
        which = ", ".join(map(visible, names))
        yield f"not pinned: {which}: opened again by path after the last check"
    elif left:
        yield (
            f"not pinned: {', '.join(map(visible, left))}: checked right before the start, then"
            " opened again by path; who can write there can swap it in between"
        )
    missing = uncovered(call.tool, arguments, workspace=workspace)
    if missing or (files and steps_of(call.tool, arguments)):
        yield f"Not covered by this approval: {', '.join((*missing, *_NEVER_COVERED))}"


def _replaced_blocks(ask: ApprovalAsk, scene: Scene, *, cut: Cut) -> Iterable[Block]:
    """Lay out how the call of an ask differs from the one that was asked about before."""
    old, new = scene.replaced.get(ask.id), scene.calls.get(ask.call)
    if old is None or new is None:
        return []
    if old.tool != new.tool:
        return [line(f"    the tool was {visible(old.tool)}")]
    changes = difference(new.tool, old.body, new.body)
    words = [text for text in changes if not text.startswith("  file ")]
    blocks = difference_blocks(words, indent="    ", cut=cut)
    was, is_now = _files_of(old), _files_of(new)
    texts = (scene.copies.get(ask.replaces or "", {}), scene.copies.get(ask.id, {}))
    for path in sorted({*was, *is_now}):
        if was.get(path) == is_now.get(path):
            continue
        shown = visible(path)
        before, after = (each.get(path) for each in texts)
        # Only what was hashed is called changed; the rest shows how it changed
        is_changed = all(each.get(path, "").startswith("sha256:") for each in (was, is_now))
        if cut == WHOLE or not is_changed:
            told = differences(
                *({path: each[path]} if path in each else {} for each in (was, is_now))
            )
            blocks += lines([f"    file {prose(each)}" for each in told])
        if before is not None and after is not None:
            blocks.append(line(f"    {shown} changed:"))
            blocks += difference_blocks(difference_lines(before, after), indent="    ", cut=cut)
        elif is_changed:
            blocks.append(line(f"    {shown} changed; no copy kept"))
    return blocks or [line("    the call is the same; its terms are stricter")]


def _files_of(call: Call) -> dict[str, str]:
    return command_of(call.body).files if call.tool == COMMAND else files_of(call.body)


def task_blocks(
    scene: Scene, commands: CommandWriter, *, now: int, cut: Cut, has_worker: bool = False
) -> list[Block]:
    """Lay out how a task stands, and what to do next."""
    task = scene.task
    blocks: list[Block] = []
    if task.state is TaskState.PAUSED:
        if scene.run and scene.run.message:
            blocks.append(line(f"It cannot go on for now: {prose(scene.run.message)}"))
        before = (Span("Paused.", state_role(task.state)), Span(" "))
        match next_step(scene, commands):
            case [CommandBlock(head, command), *rest]:
                return [*blocks, CommandBlock(head, command, before), *rest]
            case [Line(spans), *rest]:
                return [*blocks, Line((*before, *spans)), *rest]
            case _:
                return [*blocks, Line(before)]

    headline = Span(_headline(scene), state_role(task.state))
    blocks.append(line(headline, "  (task ", Span(task.id, "id"), ")"))
    blocks += unmade_blocks(scene.unmade_calls)
    if task.state is TaskState.WAITING:
        for ask in scene.open_asks:
            blocks += [BLANK, *ask_blocks(ask, scene, now=now, cut=cut)]
        blocks += [line("waits for task ", Span(child, "id")) for child in scene.waiting_on]
    following = next_step(scene, commands, has_worker=has_worker)
    return [*blocks, BLANK, *following] if following else blocks


def _headline(scene: Scene) -> str:
    unmade = unmade_words(len(scene.unmade_calls)) if scene.unmade_calls else ""
    if scene.task.state is TaskState.FAILED:
        why = prose(scene.task.message or "for no known reason")
        return f"Failed: {why}; {unmade}:" if unmade else f"Failed: {why}"
    if scene.task.state is TaskState.SUCCEEDED and unmade:
        return f"Completed; {unmade}:"
    if scene.task.state is not TaskState.WAITING:
        return _HEADLINES[scene.task.state]
    if not (count := len(scene.open_asks)):
        return "Paused: waits for another task."
    return f"Paused: {count} {'thing' if count == 1 else 'things'} to settle"


def work_blocks(scene: Scene, *, cut: Cut) -> list[Block]:
    """Lay out what a task is: its command or prompt, where it runs, and what it used."""
    spec = scene.task.spec
    if spec.prompt is None:
        head, code = "command", argv_lines(spec.argv, cut=cut)
    else:
        head, code = f"prompt for {spec.runner}", [shortened(spec.prompt, cut=cut)]
    blocks: list[Block] = [
        line(head),
        Code(lines=tuple(code), indent="  "),
        Fields(entries=(("in", Span(visible(spec.workspace), "code")),), width=4, indent="  "),
    ]
    if scene.report:
        blocks.append(line(_used(scene.report)))
    if scene.run and scene.run.checkpoint_id:
        blocks.append(line(f"checkpoint {scene.run.checkpoint_id}"))
    if spec.plan:
        blocks.append(line(f"{spec.item} of the plan {visible(spec.plan)}"))
    if spec.parent_run:
        blocks.append(line(f"started by run {spec.parent_run}"))
    return blocks


def clarification_blocks(asked: ClarificationDoc) -> list[Block]:
    """Lay out where the files of a clarification are."""
    places = (
        ("request", asked.clarification_path),
        ("response", asked.response_path),
        ("checkpoint", asked.checkpoint_path),
    )
    entries = tuple((name, Span(visible(path), "code")) for name, path in places)
    return [
        line(f"clarification {asked.request_id}"),
        Fields(entries=entries, width=11, indent="  "),
    ]


def _used(report: Report) -> str:
    """Say what the newest run used, and what all did if there were others."""
    overall = report.task or report.spent
    together = f"; all runs together {usage_words(overall)}" if overall != report.spent else ""
    return f"used {usage_words(report.spent)}{together}"


def settled_blocks(scene: Scene, *, cut: Cut) -> list[Block]:
    """Lay out how the asks of the last run were settled: by whom, at which level, as what."""
    blocks: list[Block] = []
    for ask in scene.asks:
        settled = ask.settlement
        if settled is None:
            continue
        level = f" ({settled.level})" if settled.level else ""
        reply = f": {prose(settled.reply)}" if settled.reply else ""
        by = prose(settled.by)
        blocks.append(line(f"  {ask.kind} {ask.id} was {settled.state} by {by}{level}{reply}"))
        call, original = scene.call_of(ask), scene.original_of(ask)
        if call and original:
            blocks += edit_blocks(call, original, cut=cut)
    return [line("settled"), *blocks] if blocks else []


def all_calls(
    calls: Sequence[tuple[Call, bytes | None]], *, not_made: Container[int], cut: Cut
) -> list[Block]:
    """Lay out all calls of a task, each with what it was before somebody edited it."""
    blocks: list[Block] = [line("calls")]
    for call, original in calls:
        blocks += call_blocks(call, cut=cut)
        if original is not None:
            blocks += edit_blocks(call, original, cut=cut)
        fate = "never made, although it was approved" if call.number in not_made else call.state
        blocks.append(Fields(entries=(("is", Span(fate)),), width=4, indent="    "))
    return blocks


def history_blocks(events: Sequence[Event], *, shows_all: bool) -> list[Block]:
    """Lay out what happened to a task, the newest last."""
    shown = events if shows_all else events[-_RECENT:]
    left_out = len(events) - len(shown)
    blocks: list[Block] = [
        line(f"history ({left_out} earlier left out; --full shows all)" if left_out else "history")
    ]
    for event in shown:
        facts = ", ".join(
            f"{name} {prose(str(fact))}" if shows_all else _short_fact(name, str(fact))
            for name, fact in event.facts.items()
        )
        what = f"{event.kind.replace('_', ' ')}{f'  ({facts})' if facts else ''}"
        when = stamp(event.at) if shows_all else f"{stamp(event.at)[:19].replace('T', ' ')}Z"
        blocks.append(line(f"  {when}  {event.by:<10} {what}"))
    return blocks


def _short_fact(name: str, fact: str) -> str:
    """Return a fact for the eye: ids and digests by their beginning, and a kind as it is."""
    if name in _IDENTIFIERS:
        return f"{name} {prose(fact[:_SHORT])}"
    return prose(fact) if name == "ask_kind" else f"{name} {prose(fact)}"
