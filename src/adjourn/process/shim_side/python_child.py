"""Goes on as a Python program in a fork that has its modules imported already."""

import gc
import os
import sys
from importlib import import_module
from typing import NoReturn

from adjourn.process import linux
from adjourn.system.poll import reset_signals

_UNEXPECTED = 70


def call(entry: str, argv: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """Call `module:function` with the arguments, and exit with the code that it returns."""
    code = _UNEXPECTED
    try:
        reset_signals()
        _take_over(argv, env)
        module, _, function = entry.partition(":")
        code = getattr(import_module(module), function)(list(argv[1:]))
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else _UNEXPECTED
    except BaseException:  # noqa: BLE001 -- nobody above could be told
        import traceback  # slow to import, and seldom needed

        traceback.print_exc()
    finally:
        os._exit(code)


def _take_over(argv: tuple[str, ...], env: dict[str, str]) -> None:
    """Set environment, arguments, streams and random seed as a new process would have them."""
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(argv)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 -- they live as long as we do
        for number, mode in enumerate("rww")
    )
    linux.rename_process(os.path.basename(argv[0]))
    if random := sys.modules.get("random"):
        random.seed()
    gc.enable()
