"""Tab completes verbs, options and ids with what they are, in the real shells."""

from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal
from tests.needs import needs


def test_fish_completes_with_descriptions(shell: Shell) -> None:
    fish = needs("fish")
    manifest = shell.json("run", "--pause-on-approval", "--", "ls", "-l", expect=10)
    ask, task = manifest["asks"][0]["id"][:8], manifest["task_id"][:8]

    def completed(typed: str) -> list[str]:
        code = f'eval (adjourn completion fish); complete -C "{typed}"'
        return shell.run(fish, "--no-config", "-c", code).out.splitlines()

    assert completed("adjourn appr") == ["approve\tApprove calls."]
    assert f"{ask}\tapproval: ls -l" in completed("adjourn approve ")
    assert f"{task}\twaiting: ls -l" in completed("adjourn show ")
    assert completed("adjourn approve --re")[0].startswith("--resume\t")


def test_zsh_and_bash_complete_at_a_terminal(shell: Shell) -> None:
    manifest = shell.json("run", "--pause-on-approval", "--", "ls", "-l", expect=10)
    ask = manifest["asks"][0]["id"][:8]
    begin = b"autoload -Uz compinit; compinit -u -D; "
    load = b"eval \"$(adjourn completion zsh)\"; echo rea''dy\n"
    with Terminal(shell, "-f", "-i", program=needs("zsh"), columns=100, rows=40) as person:
        person.type(begin + load)
        person.sees("ready")
        person.type(b"adjourn appr\t")
        person.shows("adjourn approve")
        person.type(b"\t")  # the only ask there is
        person.shows(f"adjourn approve {ask}")
        person.type(b"\x15adjourn res\t\t")  # several verbs, each with what it does
        person.shows("Run a task again from nothing")
        person.type(b"\x15exit\n")
        person.ends()
    load = b"eval \"$(adjourn completion bash)\"; echo rea''dy\n"
    words = ("--norc", "--noprofile", "-i")
    with Terminal(shell, *words, program=needs("bash"), columns=100, rows=40) as person:
        person.type(load)
        person.sees("ready")
        person.type(f"adjourn approve {ask[:3]}\t".encode())
        person.shows(f"adjourn approve {ask}")
        person.type(b"\x15exit\n")
        person.ends()
