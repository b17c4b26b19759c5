"""What the figures of the race share: names and colours of the methods, and what is judged."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from spectral_laws.palette import MARKERS, OPTIMIZERS, OTHER_OPTIMIZERS
from spectral_laws.plotting.tables import plural, shorten

REFERENCE = "adamw"
"""The method that the others are compared with."""


@dataclass(frozen=True)
class Look:
    """How a method is named in legends and drawn."""

    name: str
    color: str
    marker: str  # apart from those of the other methods where there are at most eight


@dataclass(frozen=True)
class Measure:
    """What the trainings of a race are judged by."""

    column: str  # of the table of the race
    scale: float  # factor from the table's unit to the figure's
    sign: int  # 1 where more is better, -1 where less is
    label: str  # of an axis of the quantity
    gain: str  # of an axis of its differences, positive where they are better
    sample: str  # what the mean is over
    bounds: tuple[float, float]  # of the quantity, in the figure's unit
    decimals: int  # of a printed difference


ACCURACY = Measure(
    "test_accuracy", 100.0, 1, "test accuracy (%)",
    "test accuracy minus AdamW's (percentage points)", "test sample", (0.0, 100.0), 2,
)  # fmt: skip
LOSS = Measure(
    "test_loss", 1.0, -1, "test loss (nats per token)",
    "AdamW's test loss minus the method's (nats per token)", "test token", (0.0, np.inf), 3,
)  # fmt: skip


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Name, colour and marker of each method, in the order given; known ones are always alike."""
    found: dict[str, Look] = {}
    for method in dict.fromkeys(methods):
        if method in OPTIMIZERS:
            name, color = OPTIMIZERS[method]
            marker = MARKERS[[*OPTIMIZERS].index(method) % len(MARKERS)]
        else:
            others = sum(known not in OPTIMIZERS for known in found)
            name = shorten(method.replace("_", " "))
            color = OTHER_OPTIMIZERS[others % len(OTHER_OPTIMIZERS)]
            marker = MARKERS[-1 - others % len(MARKERS)]
        found[method] = Look(name, color, marker)
    return found


def measures_of(race: pd.DataFrame) -> dict[str, Measure]:
    """What each race is judged by: language models by their loss, others by accuracy."""
    tasks = race.drop_duplicates("race")
    return {
        str(name): LOSS if task == "language_modelling" else ACCURACY
        for name, task in zip(tasks["race"], tasks["task"], strict=True)
    }


def last_epochs(race: pd.DataFrame) -> pd.DataFrame:
    """The last row of every training."""
    last: pd.DataFrame = race.loc[race.groupby(["race", "method", "seed"])["epoch"].idxmax()]
    return last


def describe(rows: pd.DataFrame, race: str, measure: Measure, *, width: int) -> str:
    """'images: mlp, 60 steps, 5 seeds, 400 test samples', and what diverged, wrapped."""
    counts = sorted(rows.groupby("method")["seed"].nunique())
    seeds = (
        plural(counts[0], "seed") if counts[0] == counts[-1] else f"{counts[0]}-{counts[-1]} seeds"
    )
    trained = f"{rows['model'].iloc[0]}, {plural(int(rows['steps'].iloc[0]), 'step')}"
    tested = plural(int(rows["n_test"].min()), measure.sample)
    text = textwrap.fill(f"{shorten(race)}: {trained}, {seeds}, {tested}", width)
    return f"{text}{_divergences(rows, width)}"


def _divergences(rows: pd.DataFrame, width: int) -> str:
    lost = last_epochs(rows).groupby("method", sort=False)["diverged"].agg(["sum", "size"])
    named = looks(rows["method"])
    parts = [
        f"{named[str(method)].name} ({int(count)} of {int(size)})"
        for method, count, size in lost[lost["sum"] > 0].itertuples()
    ]
    return "\n" + textwrap.fill("diverged: " + "; ".join(parts), width) if parts else ""


def divergence_handle(label: str) -> Line2D:
    """Legend entry of the mark of diverged trainings."""
    return Line2D([], [], color="black", marker="x", linestyle="none", label=label)
