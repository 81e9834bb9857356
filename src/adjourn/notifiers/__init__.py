"""The registry of notifiers: one entry per kind, with everything that adjourn knows about it.

Other packages bring theirs as an entry point of the group `adjourn.notifiers`: its name is the key
of a `[[notify]]` table that chooses it, and it names a `NotifierKind` of adjourn.ports.notifier.
"""

from collections.abc import Mapping
from typing import Any

from adjourn.ports.notifier import BadTable, NotifierKind

GROUP = "adjourn.notifiers"

OURS = {
    "command": NotifierKind(
        name="command",
        keys={
            "command": "The command to run, as a list of words; no shell. It gets the document on "
            "its stdin, and has taken it when it exits 0."
        },
        factory="adjourn.notifiers.command:prepare",
    ),
    "webhook": NotifierKind(
        name="webhook",
        keys={
            "webhook": "The URL to post to: `https`, or `http` to this machine. It has taken the "
            "document when it answers 2xx."
        },
        factory="adjourn.notifiers.webhook:prepare",
        takes_secret=True,
    ),
    "telegram": NotifierKind(
        name="telegram",
        keys={
            "telegram": "A table `[notify.telegram]`: a chat where asks have buttons.",
            "telegram.chat": "The number of the chat, or `@NAME` of a public one.",
            "telegram.token_file": "The file that holds the bot's token; a relative path begins at"
            " the config's directory. It needs this or the next one.",
            "telegram.token_env": "The environment variable that holds the bot's token.",
            "telegram.approvers": "Who may press: Telegram's number of each user, and a name. The"
            " name of a `[[person]]` makes it one more principal of that person.",
            "telegram.api": "Another server of the Bot API. Without it, Telegram's.",
        },
        factory="adjourn.notifiers.telegram:prepare",
    ),
    "ntfy": NotifierKind(
        name="ntfy",
        keys={
            "ntfy": "A table `[notify.ntfy]`: a topic of ntfy.",
            "ntfy.topic": "The topic. Its readers may decide, so it is a secret on a public"
            " server.",
            "ntfy.url": "Your server. Without it, `https://ntfy.sh`.",
            "ntfy.token_file": "The file that holds an access token, if the server wants one.",
            "ntfy.token_env": "The environment variable that holds it.",
            "ntfy.public_url": "Where phones reach `adjourn serve`: the buttons post there. Without"
            " it there are no buttons.",
            "ntfy.person": "Who reads the topic. Without it, its decisions are not a person's.",
        },
        factory="adjourn.notifiers.ntfy:prepare",
    ),
    "mail": NotifierKind(
        name="mail",
        keys={
            "mail": "A table `[notify.mail]`: mail with a link to a page that decides.",
            "mail.to": "A list of addresses.",
            "mail.from": "The address that it comes from.",
            "mail.smtp": "The mail server, `HOST` or `HOST:PORT`.",
            "mail.security": "`starttls` (without it), `tls`, or `none` for a server on this"
            " machine.",
            "mail.user": "The name to log in with, if the server wants one.",
            "mail.token_file": "The file that holds the password.",
            "mail.token_env": "The environment variable that holds it.",
            "mail.public_url": "Where browsers reach `adjourn serve`: the link leads there. Without"
            " it there is no link.",
            "mail.person": "Who reads the mail. Without it, its decisions are not a person's.",
        },
        factory="adjourn.notifiers.mail:prepare",
    ),
    "slack": NotifierKind(
        name="slack",
        keys={
            "slack": "A table `[notify.slack]`: a channel where asks have buttons.",
            "slack.channel": "The id of the channel, as in `C0123456789`.",
            "slack.bot_token_file": "The file that holds the bot's token (`xoxb-`). It needs this"
            " or the next one.",
            "slack.bot_token_env": "The environment variable that holds it.",
            "slack.app_token_file": "The file that holds the app's token (`xapp-`) for Socket Mode."
            " Without it, and the next one, there are no buttons.",
            "slack.app_token_env": "The environment variable that holds it.",
            "slack.approvers": "Who may press: the id of each member (`U0123456789`), and a name."
            " The name of a `[[person]]` makes it one more principal of that person.",
            "slack.api": "Another server of the API. Without it, Slack's.",
        },
        factory="adjourn.notifiers.slack:prepare",
    ),
    "apprise": NotifierKind(
        name="apprise",
        keys={
            "apprise": "A list of URLs of apprise, for the services that it knows. It only tells,"
            " and needs the extra `notify`.",
        },
        factory="adjourn.notifiers.apprise:prepare",
        extra="notify",
    ),
}


def choose_kind(values: Mapping[str, Any]) -> NotifierKind:
    """Return the kind that the own keys of a table ask for, or raise BadTable."""
    named = [kind for name, kind in OURS.items() if values.get(name)]
    others = [key for key in values if key not in OURS]
    if not named and others:
        named = [kind for key in others if (kind := _installed(key))]
    if not named and others:
        raise BadTable(f"object contains unknown field `{others[0]}`")
    if len(named) != 1:
        *names, last = (f"`{name}`" for name in OURS)
        raise BadTable(f"it needs one of {', '.join(names)} and {last}, and only one")
    return named[0]


def _installed(name: str) -> NotifierKind | None:
    """Return the notifier that another package brings, if one does."""
    # Imported only where a table has a key that is not ours: it is slow
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        kind = entry.load()
        if not isinstance(kind, NotifierKind) or kind.name != name:
            raise BadTable(f"the entry point {entry.value} is not a NotifierKind named {name}")
        return kind
    return None
