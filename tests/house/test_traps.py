"""What Claude Code and Codex were seen to do that would lose a call, or run one unapproved, has a test each; this is the list."""

import re

import pytest

from tests.house.project import ROOT

CLAUDE = {
    "of several calls only the last is deferred, and the others vanish": "test_real_approval.py::nothing_of_a_batch_runs",
    "without a stream a deferral is ignored": "test_real_approval.py::nothing_of_a_batch_that_does_not_stream",
    "tools start while the message still streams": "test_parts.py::a_message_that_streams_is_whole_at_its_stop",
    "a call deferred in a subagent is dropped": "test_real_questions.py::a_subagents_call_is_never_deferred",
    "background work destroys a deferral": "test_driver.py::a_program_that_lingers_at_a_deferral",
    "background work outlives its turn": "test_real_settings.py::what_claude_code_itself_refuses",
    "two resumes run an approved call twice": "test_real_session.py::two_resumes_at_once",
    "a crash after the approval, and it runs again": "test_real_session.py::a_call_whose_session_died_is_uncertain",
    "a hook that fails is a yes": "test_real_hook.py::whatever_is_broken_about_a_hook",
    "a hook that cannot be started is a yes": "test_real_hook.py::a_hook_that_cannot_be_started",
    "settings and variables switch hooks off": "test_real_settings.py::whatever_a_persons_own_settings_switch_off",
    "hooks are off, and nothing says so": "test_driver.py::a_program_whose_hooks_are_off",
    "the workspace's settings run commands": "test_real_settings.py::what_a_workspace_says_of_itself",
    "another hook changes an approved call": "test_real_settings.py::a_workspace_that_a_person_trusts",
    "a deny rule beats the yes of a hook": "test_real_settings.py::what_claude_code_itself_refuses",
    "a deferred session with a prompt loses its call": "test_driver.py::a_resume_names_its_session_in_one_word",
    "a deferred call of a megabyte is not found again": "test_real_session.py::a_deferred_call_of_two_megabytes",
    "a tool that is gone at the resume": "test_real_faults.py::a_call_whose_tool_is_gone_at_the_resume",
    "several results from one process": "test_driver.py::of_several_results_the_last_counts",
    "an error of the API says success": "test_driver.py::an_outage_of_the_api_pauses",
    "SIGINT tells the model that the person said no": "test_real_pause.py::a_pause_in_the_midst_of_a_tool",
    "a session that is killed early is lost": "test_real_pause.py::a_pause_before_the_session_is_on_disk",
    "another directory works, silently": "test_driver.py::a_resume_names_its_session_in_one_word",
    "no question without a permission host": "test_real_questions.py::a_question_is_answered",
    "the file of a session is gone or cut off": "test_real_session.py::a_session_whose_file_is_lost",
}
CODEX = {
    "in code mode earlier commands have run": "test_real_approval.py::a_script_stops_at_the_call",
    "usage counts on across resumes": "test_real_faults.py::the_tokens_of_a_run_are_its_own",
    "an API that is away is waited for for ever": "test_real_faults.py::an_api_that_is_not_there",
    "silence": "test_real_faults.py::silence_is_not_waited_for_for_ever",
    "an unknown name begins a new thread": "test_real_faults.py::a_thread_name_that_is_none",
    "another thread is opened": "test_fake.py::another_thread_in_the_place_of_the_named_one",
    "somebody else has the thread open": "test_fake.py::a_thread_that_somebody_else_has_open",
    "a thread without the prompt": "test_rollout.py::a_thread_without_the_prompt_cannot_be_resumed",
    "an id is known before there is a file": "test_fake.py::a_first_run_that_is_stopped_before_its_thread_is_there",
    "a graceful stop writes that somebody aborted it": "test_real_pause.py::ctrl_c_during_a_model_call",
    "commands survive a kill": "test_real_pause.py::ctrl_c_during_a_command",
    "a kill of the launcher leaves Codex running": "test_real_pause.py::the_launcher_of_npm_is_seen_through",
    "hooks fail open": "test_real_hook.py::whatever_is_in_the_place_of_the_hook",
    "a hook's time-out is a yes": "test_real_hook.py::codex_waits_for_the_hook_far_longer",
    "a hook that is not trusted is skipped": "test_fake.py::a_codex_that_does_not_fit_is_refused",
    "settings switch hooks off": "test_real_hook.py::a_codex_that_does_not_ask_the_hook",
    "rules let commands pass": "test_real_gate.py::a_rule_of_codex_that_allows_a_command",
    "a trusted repository starts things": "test_real_gate.py::a_repository_that_its_person_trusts",
    "MCP tools that call themselves harmless": "test_real_gate.py::tools_of_an_mcp_server_wait_too",
    "what is typed into a terminal is not gated": "test_real_faults.py::a_call_that_codex_itself_refuses",
    "a call that Codex refuses leaves no item": "test_real_faults.py::a_call_that_codex_itself_refuses",
    "a sibling that ran has no output yet": "test_real_approval.py::of_a_batch_nothing_runs_before_the_last_decision",
    "pending requests live in memory only": "test_real_approval.py::a_call_waits_for_a_person",
    "Codex closed the open call itself": "test_real_pause.py::a_call_that_codex_closed_itself",
    "questions that nobody waits for": "test_real_approval.py::a_question_for_whose_answer_the_model_does_not_wait",
    "no app-server": "test_real_exec.py::a_codex_without_an_app_server",
    "a thread's file is gone, cut off or spoilt": "test_real_pause.py::a_session_file_that_was_cut_off_or_spoilt",
}


@pytest.mark.parametrize(
    ("agent", "traps"), [("claude", CLAUDE), ("codex", CODEX)], ids=["claude", "codex"]
)
def test_every_trap_has_its_test(agent: str, traps: dict[str, str]) -> None:
    missing = [trap for trap, place in traps.items() if not _is_there(agent, *place.split("::"))]
    assert missing == []


def _is_there(agent: str, file: str, begins: str) -> bool:
    return (
        re.search(rf"^def test_{begins}", (ROOT / "tests" / agent / file).read_text(), re.MULTILINE)
        is not None
    )
