"""Compares what a page shows with what happened: ids, times and places differ, nothing else may."""

import re

PLACE = "/srv/project"  # the directory that every page works in
DATABASE = "postgresql://adjourn@db.example.org/adjourn"  # the database that pages share
# And empty ones
NEW_DATABASES = tuple(f"postgresql://adjourn@db.example.org/{name}" for name in ("second", "third"))
_ID = re.compile(r"\b[a-z2-7]{26}\b")
_SHORT = re.compile(r"\b[a-z2-7]{8}\b")
_LOOSE = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r"\b(?:now|\d+(?:\.\d+)?[smhd](?: \d+[smhd])? ago)\b"), "<ago>"),
    (re.compile(r"\b\d+(?:\.\d+)?[smhd](?: \d+[smhd])?(?=[\s,;]|$)"), "<span>"),
    (re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{16})\b"), "<digest>"),
    (re.compile(r"\bsha256([ :])[0-9a-f]{8}\b"), r"sha256\1<digest>"),
    (re.compile(r"\bpid \d+"), "pid <number>"),
    (re.compile(r"[\d,]+ bytes"), "<number> bytes"),
    (re.compile(r" {2,}"), "  "),
)


class Transcript:
    """Knows which id of the page stands for which id of this run."""

    def __init__(self, place: str, databases: dict[str, str] | None = None) -> None:
        self._place = place
        self._databases = databases or {}
        self._ids: dict[str, str] = {}

    def typed(self, command: str) -> str:
        """Return a command of the page with the ids that things have here, and with the database that is here."""
        ours = _SHORT.sub(self._short, _ID.sub(lambda hit: self._ids.get(hit[0], hit[0]), command))
        for name, url in self._databases.items():
            ours = ours.replace(name, url)
        return ours

    def difference(self, shown: tuple[str, ...], happened: list[str]) -> str | None:
        """Say where the output is not what the page shows, or None; learn ids on the way."""
        actual = [line.replace(self._place, PLACE) for line in happened]
        return self._differs(list(shown), actual)

    def _differs(self, shown: list[str], actual: list[str]) -> str | None:
        while shown and shown[0] != "…":
            if not actual or not self._fits(shown[0], actual[0]):
                return (
                    f"the page shows  {shown[0]!r}\nand there is    {actual[0]!r}"
                    if actual
                    else f"missing: {shown[0]!r}"
                )
            del shown[0], actual[0]
        if not shown:
            return f"the page does not show {actual[0]!r}" if actual else None
        for skipped in range(len(actual) + 1):
            if self._differs(shown[1:], actual[skipped:]) is None:
                return None
        return f"after '…' nothing is like {shown[1]!r} in {actual!r}"

    def _fits(self, shown: str, actual: str) -> bool:
        pattern = re.escape(_loosened(shown)).replace("…", ".*?")
        unknown: list[str] = []

        def known(hit: re.Match[str]) -> str:
            if hit[0] in self._ids:
                return self._ids[hit[0]]
            if hit[0] in unknown:
                return f"(?P=id{unknown.index(hit[0])})"
            unknown.append(hit[0])
            return f"(?P<id{len(unknown) - 1}>[a-z2-7]{{26}})"

        match = re.fullmatch(_SHORT.sub(self._short, _ID.sub(known, pattern)), _loosened(actual))
        if match:
            self._ids |= {name: match[f"id{number}"] for number, name in enumerate(unknown)}
        return match is not None

    def _short(self, hit: re.Match[str]) -> str:
        return next(
            (ours[:8] for name, ours in self._ids.items() if name.startswith(hit[0])), hit[0]
        )


def _loosened(line: str) -> str:
    for pattern, word in _LOOSE:
        line = pattern.sub(word, line)
    return line.rstrip()
