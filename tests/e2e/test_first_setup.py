"""`adjourn setup` at a terminal: the default gate, the first policy and a notification."""

import stat

from tests.e2e.shell import Shell
from tests.e2e.terminal import Terminal


def test_setup_asks_shows_and_writes_what_works(shell: Shell) -> None:
    config = shell.place / ".config" / "adjourn"
    tell = shell.script(f"cat >> {shell.place}/told", name="tell.sh")
    with Terminal(shell, "setup", columns=80, rows=60) as person:
        person.sees("Gate by default? [Y/n]")
        person.type(b"\n")
        person.sees("Begin with these rules? [Y/n]")
        person.type(b"maybe\n")
        person.sees("y or n, please.")
        person.type(b"y\n")
        person.sees("Command or URL:")
        person.type(f"'{shell.place}/{tell[2:]}' 'with words'\n".encode())
        person.sees("Write this? [Y/n]")
        assert not config.exists()  # nothing before a yes
        assert "+ pause_on_approval = true" in "\n".join(person.lines)
        person.type(b"y\n")
        assert person.ends() == 0
        assert "adjourn notify --test" in "\n".join(person.lines)
    assert stat.S_IMODE((config / "config.toml").stat().st_mode) == 0o600

    # What was written does what was said
    shell.adjourn("policy", "check")
    assert "never" in shell.adjourn("policy", "explain", "--", "rm", "-rf", "build").out
    shell.adjourn("notify", "--test")
    assert '"kind":' in (shell.place / "told").read_text()
    shell.adjourn("run", "--", "ls")
    shell.adjourn("run", "--", "date", expect=10)  # gated by default

    # Once more: what is there is left alone
    with Terminal(shell, "setup", columns=80, rows=60) as person:
        assert person.ends() == 0
        assert person.lines[-1] == "Nothing is to be written."


def test_setup_writes_nothing_without_a_yes_or_a_terminal(shell: Shell) -> None:
    refused = shell.adjourn("setup", expect=2)
    assert "it needs a terminal, or the name of a host" in refused.err
    with Terminal(shell, "setup", columns=80, rows=60) as person:
        person.sees("Gate by default? [Y/n]")
        person.type(b"n\n")
        person.sees("Begin with these rules? [Y/n]")
        person.type(b"n\n")
        person.sees("Command or URL:")
        person.type(b"https://ops.example.com/hook\n")
        person.sees("Write this? [Y/n]")
        person.type(b"n\n")
        assert person.ends() == 1
        assert person.lines[-1] == "Nothing was written."
    with Terminal(shell, "setup", columns=80, rows=60) as person:
        person.sees("Gate by default? [Y/n]")
        person.type(b"\x04")
        assert person.ends() == 1
    assert not (shell.place / ".config").exists()
