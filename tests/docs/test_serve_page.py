"""What the page on serving shows is something that systemd and a container can use."""

import json
import re
import subprocess
from pathlib import Path

from tests.docs.page import ROOT, blocks
from tests.docs.test_operate import require_words
from tests.needs import needs

PAGE = ROOT / "docs" / "how-to" / "serve.md"
FILES = {block.file: block for block in blocks(PAGE) if block.file}


def test_the_unit_is_one_and_knows_the_verb(tmp_path: Path) -> None:
    unit = FILES["adjourn-serve.service"]
    (tmp_path / unit.file).write_text(unit.text)
    done = subprocess.run(
        [needs("systemd-analyze"), "verify", f"./{unit.file}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr + done.stdout) == (0, "")
    start = next(line for line in unit.lines if line.startswith("ExecStart="))
    require_words(start.removeprefix("ExecStart=/usr/bin/env "))
    assert "KillMode=process" in unit.lines


def test_the_container_is_rootless_healthy_and_starts_the_server() -> None:
    said = dict[str, str]()
    for line in FILES["Containerfile"].lines:
        found = re.fullmatch(
            r"(FROM|RUN|COPY|USER|ENV|WORKDIR|VOLUME|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) (.+)", line
        )
        assert found, line
        said[found[1]] = found[2]
    assert said["USER"].split(":")[0].isdigit()
    assert said["USER"] != "0"
    words = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]
    require_words(" ".join(words))
    assert "/healthz" in said["HEALTHCHECK"]
