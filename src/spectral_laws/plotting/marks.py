"""Intervals of the summaries that figures draw."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def bar_lengths(rows: pd.DataFrame, value: str = "centre") -> NDArray[np.float64]:
    """(2, n) lengths of error bars, down to low and up to high, or ``value``_low and _high.

    A percentile interval need not hold the estimate; a bar is never drawn inwards.
    """
    low, high = ("low", "high") if value == "centre" else (f"{value}_low", f"{value}_high")
    ends = np.stack([rows[value] - rows[low], rows[high] - rows[value]])
    return np.maximum(ends.astype(np.float64), 0)


def ends_of(summary: pd.DataFrame) -> tuple[float, float, float]:
    """Centre, low and high of a summary of one row."""
    centre, low, high = (float(summary[name].iloc[0]) for name in ("centre", "low", "high"))
    return centre, low, high
