"""What a messenger shows: one ask with what may be pressed, or something that happened."""

from collections.abc import Callable, Mapping

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, UncertainAsk
from adjourn.core.scene import Scene
from adjourn.core.states import AskState
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import WHOLE, clipped, prose, title, visible
from adjourn.ports.notifier import Buttons, Message
from adjourn.views.block import Block, CommandWriter, Line, line, to_text
from adjourn.views.task import ask_blocks, settling_blocks

MOST_CHOICES = 4
DIGITS = 16  # of a digest, in a button
_TITLE = 200
_LABEL = 40  # characters on a button
_OUTCOMES = {
    AskState.APPROVED: "Approved",
    AskState.REJECTED: "Rejected",
    AskState.ANSWERED: "Answered",
    AskState.SETTLED: "Settled",
    AskState.EXPIRED: "Expired: nobody replied in time",
    AskState.WITHDRAWN: "Withdrawn: it needs no reply any more",
}


def ask_message(
    event_id: str,
    ask: Ask,
    scene: Scene,
    *,
    commands: CommandWriter,
    now: Milliseconds,
    columns: int,
    names: Mapping[str, str],
    why_no_approval: str | None = None,
    is_reminder: bool = False,
) -> Message:
    """Lay out one ask for a messenger; `names` are what people call principals.

    Its first line is ours alone and names the ask, so that a reply to the message can be told from
    its text. Nothing is cut: a channel without room for it all offers no approval.
    """
    subject = f"{ask.kind.capitalize()} {ask.id}"
    if is_reminder and ask.is_open:
        subject = f"Reminder: {subject}"
    what = title(scene.task.spec, columns=_TITLE)
    blocks: list[Block] = [line(subject)]
    if not ask.is_open:
        subject = outcome_words(ask, names)
        blocks.insert(0, line(subject))
    blocks += [line(f"task {scene.task.id}"), line(what)]

    # What the ask's own first line says is said above
    body = ask_blocks(ask, scene, now=now, cut=WHOLE)
    is_head = isinstance(body[0], Line) and ask.id in body[0].text
    blocks += body[1:] if is_head else body

    why_not = _why_no_button(ask) or why_no_approval
    if ask.is_open and isinstance(ask, ApprovalAsk) and why_not:
        blocks.append(line(f"No button approves this: {prose(why_not)}"))
        blocks += settling_blocks(ask, commands)
    elif ask.is_open and isinstance(ask, UncertainAsk):
        blocks += settling_blocks(ask, commands)
    return Message(
        id=event_id,
        subject=subject,
        title=clipped(prose(ask.prompt), columns=_TITLE) if isinstance(ask, QuestionAsk) else what,
        text=to_text(blocks, columns),
        show=commands("show", ask.id, "--full"),
        buttons=_buttons(ask, scene, can_approve=why_not is None) if ask.is_open else None,
    )


def outcome_words(ask: Ask, names: Mapping[str, str]) -> str:
    """Say how an ask was settled, and by whom."""
    settled = ask.settlement
    if settled is None:
        return f"{ask.kind.capitalize()} {ask.id} is open"
    words = _OUTCOMES[settled.state]
    if settled.state in {AskState.EXPIRED, AskState.WITHDRAWN}:
        return words
    said = f": {prose(settled.reply)}" if settled.reply else ""
    return f"{words} by {called(settled.by, names)}{said}"


def called(principal: str, names: Mapping[str, str]) -> str:
    """Return what to call a principal: the person's name first, if it is known."""
    name = names.get(principal)
    return f"{prose(name)} ({prose(principal)})" if name else prose(principal)


def plain_message(event_id: str, text: str, *, task_title: str, show: str) -> Message:
    """Make a message of a notice's text, which is laid out already; nothing can be pressed."""
    return Message(
        id=event_id, subject=text.partition("\n")[0], title=task_title, text=text, show=show
    )


def _why_no_button(ask: Ask) -> str | None:
    """Return why no button approves an ask, for anybody."""
    if isinstance(ask, ApprovalAsk) and ask.terms.override:
        return "your policy says never, and a button does not override that"
    if isinstance(ask, ApprovalAsk) and ask.terms.signed:
        return "it needs a signature"
    return None


def _buttons(ask: Ask, scene: Scene, *, can_approve: bool) -> Buttons | None:
    match ask:
        case ApprovalAsk():
            call = scene.call_of(ask)
            digest = call.digest[:DIGITS] if call else None
            return Buttons(
                ask_id=ask.id,
                digest=digest,
                can_approve=can_approve and digest is not None,
                can_reject=True,
            )
        case QuestionAsk() if ask.review:
            return None  # a review is looked at before it is answered
        case QuestionAsk() if 0 < len(ask.choices) <= MOST_CHOICES:
            return Buttons(ask_id=ask.id, choices=tuple(visible(each) for each in ask.choices))
        case QuestionAsk():
            return Buttons(ask_id=ask.id, takes_text=True)
        case UncertainAsk():
            return None


def fitting_text(
    message: Message, *, limit: int, size: Callable[[str], int] = len
) -> tuple[str, bool]:
    """Return as many lines of a message as fit into its channel, and whether that is all of it.

    What was not shown must not be approved: a message that had to be cut has no Approve button.
    """
    if size(message.text) <= limit:
        return message.text, True
    rows = message.text.split("\n")
    rest = f" more lines are not shown here. Show all of it with: {message.show}"
    room = limit - size(rest) - len(f"… {len(rows):,}")
    shown: list[str] = []
    for row in rows:
        room -= size(row) + 1
        if room < 0:
            break
        shown.append(row)
    return "\n".join((*shown, f"… {len(rows) - len(shown):,}{rest}")), False


def choice_labels(buttons: Buttons) -> list[str]:
    """Return what stands on the buttons of a question; a long one has a number as its name."""
    return [
        choice if len(choice) <= _LABEL else f"{number}. {choice[: _LABEL - 4]}…"
        for number, choice in enumerate(buttons.choices, start=1)
    ]


def fitting_toast(text: str, *, limit: int) -> str:
    """Return the beginning of a text for a place that has room for a sentence."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def defused(text: str) -> str:
    """Return a text of which a channel without code makes no links, with a dot where it was broken.

    Mail programs and ntfy make a link of whatever looks like one, and have no way to say no.
    """
    return text.replace("://", ":·//").replace("www.", "www·.").replace("mailto:", "mailto·:")
