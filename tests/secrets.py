"""Canaries: secrets as people pass them, each with a part that is found nowhere else."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

Shape = Callable[[str], list[str]]  # the words of a command line that carry a secret


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A secret: the words that carry it, and what must not be found."""

    name: str
    words: tuple[str, ...]
    core: str


# Every shape keeps the core as it is, so that a search for it finds the secret.
SHAPES: dict[str, Shape] = {
    "an option and its value": lambda core: ["--password", core],
    "an option with its value": lambda core: [f"--api-key={core}"],
    "a token option": lambda core: ["--auth-token", core],
    "a short secret": lambda core: [f"--client-secret={core}"],
    "an assignment": lambda core: [f"DB_PASSWORD={core}"],
    "an exported variable": lambda core: [f"export GITHUB_TOKEN='{core}'"],
    "a shell text": lambda core: ["-c", f"mysql --password={core} -e 'select 1'"],
    "a spaced option in a text": lambda core: ["-c", f"deploy --token {core} --now"],
    "a header": lambda core: ["-H", f"Authorization: Bearer {core}"],
    "basic authentication": lambda core: ["-H", f"Authorization: Basic {core}=="],
    "a key in a header": lambda core: ["-H", f"X-Api-Key: {core}"],
    "a user and a password": lambda core: ["-u", f"admin:{core}"],
    "a URL": lambda core: [f"postgres://app:{core}@db.example:5432/app"],
    "a JSON text": lambda core: [f'{{"user": "ada", "password": "{core}"}}'],
    "a YAML text": lambda core: [f"secret: {core}9"],
    "an access key": lambda core: [f"AKIA{core.upper()[:16]}"],
    "a GitHub token": lambda core: [f"ghp_{core}aZ09"],
    "a fine-grained token": lambda core: [f"github_pat_{core}_aZ09"],
    "a GitLab token": lambda core: [f"glpat-{core}"],
    "a Slack token": lambda core: [f"xoxb-{core}"],
    "a Stripe key": lambda core: [f"sk_live_{core}"],
    "an OpenAI key": lambda core: [f"sk-proj-{core}"],
    "a Google key": lambda core: [f"AIza{core}{core}"[:39]],
    "a JWT": lambda core: [f"eyJhbGciOiJIUzI1NiJ9.eyJ{core}.{core}"],
    "a private key": lambda core: [
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{core}\n-----END OPENSSH PRIVATE KEY-----\n"
    ],
}
OWN_PATTERN = "acme-[0-9a-f]{8,64}"


def canaries(count: int = 50) -> list[Canary]:
    """Return that many secrets, each of another value, over all shapes in turn."""
    names = list(SHAPES)
    return [_canary(names[number % len(names)], number) for number in range(count)]


def _canary(name: str, number: int) -> Canary:
    core = hashlib.sha256(f"canary {number}".encode()).hexdigest()[:24]
    words = tuple(SHAPES[name](core))
    is_capital = name == "an access key"
    return Canary(
        name=f"{name} {number}", words=words, core=core.upper()[:16] if is_capital else core[:20]
    )


def is_store(path: Path, store: Path) -> bool:
    """Say whether a file is the store itself: the database, or what a run printed."""
    return path.is_relative_to(store) and (
        path.name.startswith("adjourn.db") or path.name in {"stdout", "stderr"}
    )
