"""Every quirk that real agents were seen to have, played by a scripted one."""

from typing import Any

import pytest

from tests.acp.scene import DONE, Scene, run

YES, EVER = ("yes", "Allow once", "allow_once"), ("ever", "Always allow", "allow_always")
SWITCHES = ("yes_mode", "Allow once and switch to auto mode", "allow_once")
RISKY = ("risk_based", "Allow, confirm by risk from now on", "allow_once")


def test_noise_unknown_requests_late_updates_replayed_history_and_yeses_that_do_more(
    scene: Scene,
) -> None:
    """Qwen, OpenHands, Vibe and whoever loads a session."""
    quirks = ("noise", "unknown", "bare", "late", "load", "late replay", "detaches")
    options = [SWITCHES, RISKY, YES, EVER]
    scene.play([run("A")], [run("A", "call_B")], DONE, quirks=quirks, options=options)
    scene.run()
    assert "echo A >> made.txt" in scene.shown()
    scene.approve_all()
    done = scene.resume()
    assert scene.lines() == ["A"]
    assert scene.session()["told"] == ["unknown -32601", "unknown -32601", "yes"]
    assert "OLD WORDS" not in done.out
    assert scene.shell.processes() == {}


def test_a_title_is_the_agents_words_and_the_command_is_what_is_shown(scene: Scene) -> None:
    """Copilot's title is the model's own description."""
    scene.play([run("A", more={"directory": "/"})], DONE, quirks=("lies",))
    scene.run()
    assert scene.arguments() == {
        "command": "echo A >> made.txt",
        "directory": "/",
        "workdir": "/",
    }
    assert "It calls this: List the files" in scene.shown()


def test_a_call_that_is_not_shown_cannot_be_approved_unless_the_user_says_that_titles_are_calls(
    scene: Scene,
) -> None:
    """Gemini sends no arguments."""
    scene.play([run("A")], DONE, quirks=("title only",))
    refused = scene.run(expect=0)
    assert scene.lines() == []
    assert "Not run: scripted does not show its call 'echo A >> made.txt'" in refused.err
    assert "title_is_call = true in [acp.scripted]" in refused.err
    scene.configure("trust = true\ntitle_is_call = true")
    scene.play([run("A")], [run("A", "call_B")], DONE, quirks=("title only",))
    scene.run()
    assert "(the agent shows no more than this title)" in str(scene.asks()[0]["manifest"])
    scene.approve_all()
    scene.resume()
    assert scene.lines() == ["A"]


def test_an_agent_that_asks_once_for_several_calls_shows_all_of_them(scene: Scene) -> None:
    """OpenHands: `Confirm Agent Actions`, under the same id after a restart."""
    scene.configure("trust = true\nconfirms_all = true\nkeeps_shell = true")
    first, again = [run("A"), run("B", "call_B")], [run("A", "call_C"), run("B", "call_D")]
    scene.play(first, again, DONE, quirks=("confirms all",))
    scene.run()
    assert [each["command"] for each in scene.arguments()["calls"]] == [
        "echo A >> made.txt",
        "echo B >> made.txt",
    ]
    scene.approve_all()
    scene.resume()
    assert scene.lines() == ["A", "B"]
    assert list(scene.calls().values()) == ["done"]


def test_a_change_of_a_file_is_shown_as_what_would_be_written(scene: Scene) -> None:
    scene.play([{"write": "note.txt", "text": "hello\n", "id": "call_A"}], DONE)
    scene.run()
    path = str(scene.work / "note.txt")
    assert scene.arguments() == {
        "changes": [{"path": path, "old": None, "new": "hello\n"}],
        "path": path,
    }


@pytest.mark.parametrize("options", [[EVER], [SWITCHES, EVER]], ids=["for ever", "with a mode"])
def test_a_yes_that_does_more_than_let_one_call_run_is_never_given(
    scene: Scene, options: list[tuple[str, ...]]
) -> None:
    scene.play([run("A")], DONE, quirks=("no no",), options=options)
    refused = scene.run(expect=0)
    assert "offers no plain yes for its call" in refused.err
    assert scene.session()["told"][0] == "cancelled"
    assert scene.lines() == []


def test_of_several_plain_yeses_a_person_chooses(scene: Scene) -> None:
    options = [("one", "Allow here", "allow_once"), ("two", "Allow there", "allow_once")]
    scene.play([run("A")], [run("A", "call_B")], DONE, options=options)
    scene.run()
    asks = {ask["kind"]: ask for ask in scene.asks()}
    assert asks["question"]["choices"] == ["Allow here", "Allow there"]
    scene.shell.adjourn("approve", asks["approval"]["id"])
    scene.resume("Allow there")
    assert scene.session()["told"] == ["two"]
    assert scene.lines() == ["A"]


def test_the_asking_mode_is_set_at_the_start_and_after_a_resume(scene: Scene) -> None:
    """Qwen begins in `auto`, Vibe in `accept-edits`; modes are not kept with a session."""
    modes: dict[str, Any] = {
        "modes": ["auto", "default", "yolo"],
        "mode": "auto",
        "asks in": "default",
    }
    scene.play([run("A")], [run("A", "call_B")], [run("B", "call_C")], DONE, **modes)
    refused = scene.run(expect=1)
    assert "scripted is in mode auto, in which it makes calls without asking" in refused.out
    scene.configure('trust = true\nmode = "default"')
    scene.run()
    scene.approve_all()
    scene.resume(expect=10)
    assert scene.lines() == ["A"]
    refused = scene.run(expect=1, options=("--option", "mode=nothing"))
    assert "no mode nothing" in refused.out
    assert "it has auto, default, yolo" in refused.out


@pytest.mark.parametrize(
    ("quirk", "said"),
    [
        ("switches", "is in mode yolo"),
        ("no resume", "cannot open a session again"),
        ("fails", "the model's server is away"),
        ("says nothing", "ended its turn without a word or a result"),
        ("login", "Authentication required"),
    ],
)
def test_what_an_agent_cannot_do_is_said(scene: Scene, quirk: str, said: str) -> None:
    scene.play([run("A")], DONE, quirks=(quirk,))
    assert said in scene.run(expect=1).out
    assert scene.lines() == []
    if quirk == "login":
        scene.configure('trust = true\nlogin = "key"')
        scene.play(DONE, quirks=(quirk,))
        scene.run(expect=0)


def test_where_the_models_server_fails_after_work_was_done_the_task_pauses(scene: Scene) -> None:
    """Codex ended so with `end_turn` and nothing done."""
    scene.play([run("A")], DONE)
    scene.run()
    scene.approve_all()
    scene.play([run("A")], DONE, quirks=("says nothing",))
    assert "It cannot go on for now" in scene.resume(expect=10).out
    scene.play([run("A")], [run("A", "call_B")], DONE)
    scene.resume()
    assert scene.lines() == ["A"]
