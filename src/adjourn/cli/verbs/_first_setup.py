"""Walks a person through the first policy, a notification and the default gate, and writes them."""

import os
import sys
from collections.abc import Sequence

import msgspec

from adjourn.cli.session import Session
from adjourn.cli.terminal import flush
from adjourn.core import exits
from adjourn.core.errors import Misuse
from adjourn.core.text.render import command_line, prose, visible
from adjourn.settings.config import Config, config_directory, read_config
from adjourn.settings.policies import POLICY
from adjourn.system.files import write_whole
from adjourn.views.block import BLANK, Block, CommandBlock, Span, line
from adjourn.views.file_change import difference_lines, role_of_line

_NAME = "me"
_HTTPS = "https://"
_READING = (
    (("ls", "**"), "read_only"),
    (("cat", "**"), "read_only"),
    (("pwd",), "read_only"),
    (("git", "status"), "read_only"),
    (("git", "diff"), "read_only"),
    (("git", "log", "**"), "read_only"),
)
_NEVER = (("rm", "-rf", "**"), ("git", "push", "--force", "**"))


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a person chose: the files as they shall be, by their paths."""

    files: dict[str, str]
    has_notifier: bool
    needs_secret: bool  # of a webhook that has no secret yet


def set_up_here(session: Session) -> int:
    """Ask for each thing that is not there yet, show the files, and write them after a yes."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if session.wants_json or not all(stream and stream.isatty() for stream in streams):
        raise Misuse(
            "setup asks questions: it needs a terminal, or the name of a host",
            way_out="adjourn setup claude",
        )
    config = read_config()
    try:
        wanted = _asked(session, config)
        changed = {path: text for path, text in wanted.files.items() if text != _read(path)}
        if not changed:
            session.print("\nNothing is to be written.")
            return exits.COMPLETED
        for path, text in changed.items():
            blocks: list[Block] = [BLANK, line(Span(visible(path), "strong"))]
            blocks += [
                line("  ", Span(row, role_of_line(row)))
                for row in difference_lines(_read(path), text)
            ]
            session.show(blocks)
        session.print("")
        if not _says_yes(session, "Write this?"):
            session.print("Nothing was written.")
            return exits.FAILED
    except EOFError:
        session.print("\nNothing was written.")
        return exits.FAILED
    for path, text in changed.items():
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, text.encode())
        session.print(f"Written: {visible(path)}")
    secret_file = _secret_file()
    if wanted.needs_secret and not os.path.lexists(secret_file):
        # Only a webhook needs it
        from base64 import b64encode

        write_whole(secret_file, f"whsec_{b64encode(os.urandom(32)).decode()}\n".encode())
        session.print(f"Written: {visible(secret_file)}, a new secret for the webhook")
    following: list[Block] = [BLANK, CommandBlock("Check it:  ", session.commands("doctor"))]
    if wanted.has_notifier:
        following.append(CommandBlock("Test it:   ", session.commands("notify", "--test")))
    gated = session.commands("run", "--pause-on-approval", "--", "date")
    session.show([*following, CommandBlock("Try it:    ", gated)])
    return exits.COMPLETED


def _asked(session: Session, config: Config) -> Wanted:
    """Return the files that come of a person's answers; what is there already is left alone."""
    policy_path = os.path.join(config_directory(), POLICY)
    policy, settings = _read(policy_path), _read(config.path)

    session.print("1. The gate. Shall commands and agents wait for your approval, unless a rule")
    session.print("   lets them run? Otherwise only `run --pause-on-approval` does.")
    if "pause_on_approval" in config.content:
        session.print(f"   Your config says so already: {visible(config.path)}")
    elif _says_yes(session, "   Gate by default?"):
        # A key of the file itself stands before its first table
        settings = f"pause_on_approval = true\n{settings}"

    session.print("\n2. The policy. Commands that only look need no approval:")
    session.print(f"   {', '.join(command_line(words) for words, _ in _READING)}")
    session.print("   And these never run without an override:")
    session.print(f"   {', '.join(command_line(words) for words in _NEVER)}")
    if policy:
        session.print(f"   You have a policy already: {visible(policy_path)}")
    elif _says_yes(session, "   Begin with these rules?"):
        policy = _first_policy()

    session.print("\n3. Notifications. What shall be run when something waits for you? It gets")
    session.print("   JSON on stdin. An https:// URL is posted to; empty is nothing.")
    answer = ""
    if config.content.get("notify"):
        session.print(f"   Your config has notifiers already: {visible(config.path)}")
    else:
        answer = _answer(session, "   Command or URL: ").strip()
        settings += _notify_table(answer, is_first=not settings) if answer else ""
    return Wanted(
        files={config.path: settings, policy_path: policy},
        has_notifier=bool(answer or config.content.get("notify")),
        needs_secret=answer.startswith(_HTTPS),
    )


def _first_policy() -> str:
    rules = [
        f'[[rule]]\nargs = {_quoted(words)}\naction = "auto"\neffect = "{effect}"\n'
        for words, effect in _READING
    ]
    rules += [f'[[rule]]\nargs = {_quoted(words)}\naction = "never"\n' for words in _NEVER]
    return "\n".join(rules)


def _notify_table(answer: str, *, is_first: bool) -> str:
    if answer.startswith(_HTTPS):
        secret = os.path.basename(_secret_file())
        chosen = f"webhook = {_quoted(answer)}\nsecret_file = {_quoted(secret)}\n"
    else:
        # Only a command needs it
        import shlex

        try:
            chosen = f"command = {_quoted(shlex.split(answer))}\n"
        except ValueError as error:
            sentence = f"{prose(answer)} is not a command: {error}"
            raise Misuse(sentence, way_out="adjourn setup") from None
    told = 'on = ["pause", "failure", "uncertain"]\n'
    return f"{'' if is_first else chr(10)}[[notify]]\nname = {_quoted(_NAME)}\n{told}{chosen}"


def _quoted(value: str | Sequence[str]) -> str:
    """Return a text, or a list of texts, as TOML has them: printable ones are as in JSON."""
    text = msgspec.json.encode(value).decode()
    return text if isinstance(value, str) else text.replace('","', '", "')


def _secret_file() -> str:
    return os.path.join(config_directory(), f"{_NAME}.secret")


def _says_yes(session: Session, question: str) -> bool:
    while True:
        answer = _answer(session, f"{question} [Y/n] ").strip().casefold()
        if answer in {"", "y", "yes"}:
            return True
        if answer in {"n", "no"}:
            return False
        session.print("   y or n, please.")


def _answer(session: Session, question: str) -> str:
    """Return the next line that a person types; nothing that they type is an escape sequence."""
    sys.stdout.write(question)
    flush()
    typed = sys.stdin.readline()
    if not typed:
        raise EOFError
    text = typed.rstrip("\n")
    if not text.isprintable():
        session.print("   That has characters which cannot be seen: it counts as nothing.")
        return ""
    return text


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
