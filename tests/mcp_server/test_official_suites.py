"""What the makers of the protocol check servers with: the Inspector, and the conformance suite."""

import json

import pytest

from tests.e2e.shell import ADJOURN, Shell
from tests.programs import program


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_nothing_wrong_with_the_tools(shell: Shell, era: str) -> None:
    words = ("--cli", "--method", "tools/list", "--strict", "--protocol-era", era)
    done = shell.run(program("node"), program("inspector"), *words, str(ADJOURN), "mcp")
    assert len(json.loads(done.out)["tools"]) == 11


def test_three_hundred_calls_ten_at_once_have_no_error(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    load = ("--load", "--load-requests", "300", "--load-concurrency", "10")
    words = ("--cli", "--method", "tools/call", "--tool-name", "list_tasks", *load)
    done = shell.run(program("node"), program("inspector"), *words, str(ADJOURN), "mcp")
    told = json.loads(done.out)
    assert (told["ok"], told["toolErrors"], told["errors"]) == (300, 0, 0)


@pytest.mark.parametrize("url", ["agent:conformance"], indirect=True)
def test_the_conformance_scenarios_pass(url: str, shell: Shell) -> None:
    for scenario in ("server-initialize", "ping", "tools-list", "dns-rebinding-protection"):
        words = ("server", "--url", url, "--scenario", scenario)
        done = shell.run(program("node"), program("conformance"), *words)
        assert "0 failed, 0 warnings" in done.out, done.out
