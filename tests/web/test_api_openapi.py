"""The OpenAPI document: it is valid, it has every route, and the server does what it says.

Issue 18: schemathesis, 1,000 examples an operation with `--sweep full`; CI's share is small.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from openapi_spec_validator import validate
from starlette.routing import Route

from adjourn.web.api import OPERATIONS
from adjourn.web.openapi import document_routes, openapi_document
from adjourn.web.operations import routes_of
from tests.e2e.shell import Shell
from tests.needs import needs
from tests.stores import on_store
from tests.web.api_client import Api, approvals, new_token, questions
from tests.web.served import Served

# What JSON Schema cannot say depends on the state: an ETag that is out of date is 412
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 412]
[checks.negative_data_rejection]
expected-statuses = ["4xx"]
"""


def test_the_document_is_valid_and_has_every_route() -> None:
    document = openapi_document()
    validate(document)
    served = {
        (route.path, method)
        for route in routes_of(OPERATIONS)
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {
        (path, method.upper()) for path, methods in document["paths"].items() for method in methods
    }
    assert served == told
    names = [each.name for each in OPERATIONS]
    assert len(names) == len(set(names))
    assert all(each.run.__doc__ for each in OPERATIONS)
    assert {route.path for route in document_routes() if isinstance(route, Route)} == {
        "/api/v1/openapi.json",
        "/api/v1/schemas/manifest.json",
    }


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """Return a server with a few asks on it; `--on postgres` has them in a shared store."""
    shell = on_store(request, Shell(tmp_path))
    shell.adjourn("run", "--", "true")
    approvals(shell, 5)
    questions(shell, 5, "yes", "no")
    with Served(shell) as served:
        yield served
    assert shell.end() == {}


# Each example of these starts processes
_STARTS = ("startTask", "restartTask", "resumeTask")


def test_the_server_does_what_the_document_says(served: Served, sweep: str) -> None:
    """No server error and no answer that the document does not have, whatever is sent."""
    scopes = ("--scope", "approve", "--scope", "answer", "--scope", "request")
    token = new_token(served.shell, "tester", *scopes)
    (served.shell.place / "st.toml").write_text(SETTINGS)
    but_starts = [f"--exclude-operation-id={name}" for name in ("followEvents", *_STARTS)]
    if sweep == "ci":
        run_schemathesis(
            served, token, "--max-examples=2", "--phases=fuzzing,stateful", *but_starts
        )
    else:
        starts = [f"--include-operation-id={name}" for name in _STARTS]
        run_schemathesis(served, token, "--max-examples=1000", *but_starts)
        run_schemathesis(served, token, "--max-examples=30", "--phases=fuzzing", *starts)
    with Api(served.url, "") as stranger:  # the descriptions are no secret
        assert stranger.get("/schemas/manifest.json")["$ref"] == "#/$defs/Manifest"
        assert stranger.get("/openapi.json") == openapi_document()


def run_schemathesis(served: Served, token: str, *options: str) -> None:
    """Run schemathesis against a server, and insist that it finds nothing."""
    done = subprocess.run(
        [
            needs("schemathesis"),
            "--config-file=st.toml",
            "--no-color",
            "run",
            f"{served.url}/api/v1/openapi.json",
            f"--header=Authorization: Bearer {token}",
            "--checks=all",
            "--seed=18",
            "--generation-deterministic",
            "--generation-allow-x00=false",
            "--generation-with-security-parameters=false",
            *options,
        ],
        cwd=served.shell.place,
        env=served.shell.environment,
        capture_output=True,
        text=True,
        timeout=7_000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    print(done.stdout[-1_500:])
