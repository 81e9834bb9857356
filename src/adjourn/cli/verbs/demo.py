"""adjourn demo: a pause and a resume before your eyes, in a directory of its own."""

import os
import subprocess
import tempfile

import msgspec

from adjourn.cli.options import bare_verb
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.errors import AdjournError
from adjourn.views.block import BLANK, Span, line
from adjourn.wiring.own_program import own_environment, own_python

_SCRIPT = """\
#!/bin/sh
region=$(adjourn ask "Which region?" --choice eu --choice us) || exit $?
echo "plan: 3 machines in $region"
[ "$AUTO_APPROVAL" ] || exit 90
echo "deployed to $region, approved with '$AUTO_APPROVAL'"
"""
_SECONDS = 60


class _Ask(msgspec.Struct):
    id: str
    task_id: str


class _Inbox(msgspec.Struct):
    asks: list[_Ask]


@bare_verb("demo")
def command(session: Session) -> int:
    """Show a script that stops for a person twice, leaves, and comes back.

    It leaves nothing behind.
    """
    with tempfile.TemporaryDirectory(prefix="adjourn-demo-") as place:
        _play(Demo(session, place))
    session.print("\nThat was all: the directory is gone. Yours: adjourn run -- YOUR-COMMAND")
    return exits.COMPLETED


def _play(demo: "Demo") -> None:
    demo.tell("A script that needs an answer, and then an approval:")
    demo.show_script()
    demo.tell(
        "Run it under adjourn. It asks, and its process is gone;"
        " exit code 10 says that a person is needed."
    )
    demo.adjourn("run", "--", "./deploy.sh", expect=exits.PAUSED)
    demo.tell("The pause is on disk for machines, too: .adjourn/session/pause.json")
    demo.show_manifest()
    demo.tell("What waits for you, now or next week:")
    demo.adjourn("inbox")
    ask = demo.first_ask()
    demo.tell(
        "Answer, and go on. It stops again: exit code 90 asks for approval of the very command."
    )
    demo.adjourn("answer", ask.id, "eu")
    demo.adjourn("resume", ask.task_id, expect=exits.PAUSED)
    demo.tell("Approve, and go on. It is started once, with exactly what was shown.")
    demo.adjourn("approve", demo.first_ask().id, "--value", "yes")
    demo.adjourn("resume", ask.task_id)
    demo.tell("Three processes, one task:")
    demo.adjourn("runs", ask.task_id)


class Demo:
    """A directory with a script in it, and what is printed of what happens there."""

    def __init__(self, session: Session, place: str) -> None:
        self._session = session
        self._place = place
        outer = {
            name: value for name, value in os.environ.items() if not name.startswith("ADJOURN_")
        }
        self._environment = own_environment(outer) | {
            "ADJOURN_STORE": os.path.join(place, ".adjourn"),
            "ADJOURN_STATE": os.path.join(place, "state"),  # nothing is left behind, there either
        }
        script = os.path.join(place, "deploy.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(_SCRIPT)
        os.chmod(script, 0o700)

    def tell(self, text: str) -> None:
        """Say what comes next."""
        self._session.show([BLANK, line(Span(f"── {text}", "strong"))])

    def show_script(self) -> None:
        """Print the script."""
        self._session.print(_indented(_SCRIPT))

    def show_manifest(self) -> None:
        """Print the manifest."""
        with open(
            os.path.join(self._place, ".adjourn", "session", "pause.json"), encoding="utf-8"
        ) as file:
            self._session.print(_indented(file.read()))

    def adjourn(self, *words: str, expect: int = exits.COMPLETED) -> str:
        """Run a command of ours in its own process, show it, and insist on its exit code."""
        self._session.print(f"$ adjourn {' '.join(words)}")
        done = self._run(*words)
        self._session.print(_indented(done.stdout + done.stderr))
        if done.returncode != expect:
            raise AdjournError(
                f"the demo went wrong: exit code {done.returncode}", way_out="adjourn --help"
            )
        self._session.print(f"  (exit code {done.returncode})")
        return done.stdout

    def first_ask(self) -> _Ask:
        """Return what waits first."""
        return msgspec.json.decode(self._run("inbox", "--output", "json").stdout, type=_Inbox).asks[
            0
        ]

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            own_python(*words),
            cwd=self._place,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip().splitlines())
