"""How far a reader has to walk: the functions and files of ours that a command passes through.

Counted are distinct `def`s, in the first process, from `cli.app.run` on.
"""

import json
import os
import subprocess
import sys
import tempfile

from _figures import Figure, report, words

# Comprehensions and lambdas have a name in angle brackets, a class body is not optimized.
TRACED = """
import json, os, sys
import adjourn
from adjourn.cli.app import run

own, process, seen = os.path.dirname(adjourn.__file__), os.getpid(), set()

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_name[0] != "<":
        if code.co_filename.startswith(own):
            seen.add((os.path.relpath(code.co_filename, own), code.co_firstlineno, code.co_qualname))

sys.setprofile(note)
run(sys.argv[2:])
sys.setprofile(None)
if os.getpid() == process:
    with open(sys.argv[1], "w") as file:
        json.dump(sorted(seen), file)
"""
GOALS = {"run": (70, 350), "approve": (30, 160)}


def main() -> int:
    """Count, print, and say by the exit code whether a goal was missed."""
    given = words(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as place:
        walks = {"run": _walk(place, "run", "--", "sh", "-c", "exit 90")}
        ask = json.loads(_adjourn(place, "inbox", "--output", "json"))["asks"][0]["id"]
        walks["approve"] = _walk(place, "approve", ask)
    figures: list[Figure] = []
    for verb, seen in walks.items():
        files = sorted({file for file, _, _ in seen})
        for what, count, goal in zip(
            ("files", "functions"), (len(files), len(seen)), GOALS[verb], strict=True
        ):
            figures.append(Figure(f"{verb}: {what}", str(count), "", count, goal, unit=""))
        if given.verbose:
            for file in files:
                names = [name for where, _, name in seen if where == file]
                print(f"{verb}  {file} ({len(names)}): {', '.join(names)}")
    return report("What a newcomer reads to follow a command", figures)


def _walk(place: str, *command: str) -> list[tuple[str, int, str]]:
    """Run a command in a fresh interpreter and return the functions that it entered."""
    target = os.path.join(place, "walk.json")
    traced = [sys.executable, "-c", TRACED, target, *command]
    subprocess.run(traced, cwd=place, env=_environment(place), capture_output=True, check=True)
    with open(target, encoding="utf-8") as file:
        return [tuple(each) for each in json.load(file)]


def _adjourn(place: str, *command: str) -> str:
    program = [sys.executable, "-m", "adjourn", *command]
    environment = _environment(place)
    done = subprocess.run(
        program, cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def _environment(place: str) -> dict[str, str]:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("ADJOURN_")}
    return outer | {"XDG_CONFIG_HOME": place, "ADJOURN_STATE": os.path.join(place, "state")}


if __name__ == "__main__":
    sys.exit(main())
