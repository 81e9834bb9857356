"""How much a core install brings along: distributions and bytes."""

import os
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

from _figures import Figure, report, show, words

import adjourn

MOST = 6
MEGABYTES = 20.0
_NOT_OURS = {"pip", "setuptools", "wheel"}  # an environment may come with them


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    given = words(__doc__).parse_args()
    found = {dist.name: _bytes(dist) for dist in distributions() if dist.name not in _NOT_OURS}
    if given.verbose:
        show(
            ("", "MB"),
            [
                (name, f"{size / 1e6:.2f}")
                for name, size in sorted(found.items(), key=lambda entry: -entry[1])
            ],
        )
    total = sum(found.values()) / 1e6
    return report(
        f"What is installed in {sys.prefix}",
        [
            Figure(
                "distributions, adjourn included", str(len(found)), "", len(found), MOST, unit=""
            ),
            Figure(
                "size, compiled modules included",
                f"{total:.1f} MB",
                "",
                total,
                MEGABYTES,
                unit=" MB",
            ),
        ],
    )


def _bytes(dist: Distribution) -> int:
    files = {os.path.realpath(str(dist.locate_file(file))) for file in dist.files or ()}
    if dist.name == "adjourn":
        # An editable install lists a link only.
        files |= {str(path) for path in Path(adjourn.__file__).parent.rglob("*")}
    return sum(os.stat(path).st_size for path in files if os.path.isfile(path))


if __name__ == "__main__":
    sys.exit(main())
