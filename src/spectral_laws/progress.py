"""Progress of long steps as plain lines, so that a log file stays readable."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


class _LineProgress(tqdm):  # type: ignore[type-arg]
    """tqdm that prints one line per update instead of redrawing a bar."""

    @staticmethod
    def status_printer(file: object) -> Callable[[str], None]:
        def print_status(line: str) -> None:
            if line:
                print(line, file=sys.stderr, flush=True)

        return print_status


def track(
    items: Iterable[T], *, total: int, label: str, seconds: float = 5.0, done: int = 0
) -> Iterator[T]:
    """Yield ``items`` and print ``label: done/total, time left`` every few seconds.

    Args:
        items: what is left to do.
        total: of all items, those already ``done`` before included.
        label: what is being done.
        seconds: between two lines.
        done: items done before, by an earlier run.
    """
    yield from _LineProgress(
        items,
        total=total,
        initial=done,
        desc=label,
        mininterval=seconds,
        miniters=1,
        bar_format="{desc}: {n_fmt}/{total_fmt}, {elapsed} elapsed, {remaining} left{postfix}",
    )
