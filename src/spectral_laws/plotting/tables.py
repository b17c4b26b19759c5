"""Checks and summaries of the tables that figures are drawn from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import NumericalError


def groups(table: pd.DataFrame, *columns: str) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Values of ``columns`` and the rows that have them, in the order of the values."""
    return [(key, rows) for key, rows in table.groupby(list(columns))]


def summarise_seeds(
    table: pd.DataFrame,
    by: Sequence[str],
    value: str,
    *,
    confidence: float,
    logarithmic: bool = False,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> pd.DataFrame:
    """Mean of ``value`` over the seeds of each group, with Student's interval of that mean.

    mean +- t_{(1 + confidence)/2, m - 1} s / sqrt(m) over the m rows of a group; of log(value),
    mapped back (so a geometric mean), if ``logarithmic``. With one seed there is no interval:
    low = high = mean.

    Args:
        table: one row per seed and group.
        by: columns that name a group; the result is sorted by them.
        value: column to average.
        confidence: level of the interval, in (0, 1).
        logarithmic: for quantities drawn on a logarithmic axis.
        bounds: the interval is cut to the range the quantity can have.

    Returns:
        Columns ``by``, centre, low, high and seeds (m).

    Raises:
        NumericalError: if a value is NaN or infinite, or not positive where logarithmic.
    """
    numbers = table[value].to_numpy(dtype=np.float64)
    check_finite(f"column {value!r}", numbers)
    if logarithmic and (numbers <= 0).any():
        raise NumericalError(f"column {value!r}: {(numbers <= 0).sum()} values are not positive")
    work = table[list(by)].assign(_value=np.log(numbers) if logarithmic else numbers)
    summary = work.groupby(list(by))["_value"].agg(["mean", "std", "size"]).reset_index()
    count = summary["size"].to_numpy()
    quantile = stdtrit(np.maximum(count - 1, 1), 0.5 * (1 + confidence))
    half = quantile * np.nan_to_num(summary["std"].to_numpy()) / np.sqrt(count)
    ends = {"centre": summary["mean"].to_numpy()}
    ends |= {"low": ends["centre"] - half, "high": ends["centre"] + half}
    if logarithmic:
        ends = {name: np.exp(end) for name, end in ends.items()}
    low, high = bounds
    clipped = {name: np.clip(end, low, high) for name, end in ends.items() if name != "centre"}
    return summary[list(by)].assign(centre=ends["centre"], **clipped, seeds=count)


def seed_count(table: pd.DataFrame) -> str:
    """Number of distinct seeds in words: '1 seed', '5 seeds'."""
    return plural(int(table["seed"].nunique()), "seed")


def plural(count: int, noun: str) -> str:
    """``count`` and the noun, with an s where it takes one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def study_name(name: object) -> str:
    """A study's name as the start of a panel's title: on the same line where it is short."""
    text = shorten(str(name), limit=48)
    return f"{text}: " if len(text) <= 16 else f"{text}:\n"


def shorten(name: str, *, limit: int = 26) -> str:
    """A name cut in the middle to ``limit`` characters; its end tells layers apart."""
    if len(name) <= limit:
        return name
    tail = (limit - 1) * 2 // 3
    return f"{name[: limit - 1 - tail]}\u2026{name[-tail:]}"
