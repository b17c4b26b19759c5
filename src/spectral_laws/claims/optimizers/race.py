"""Measurements of the claim on Spectral Newton, the race between optimizers: B14."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import Index, Resampling, Vector
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

_TRAINING = ["race", "seed"]
"""Trainings of a race that share a seed share initial weights and the order of the samples."""


def measure_gain(
    tables: ClaimTables, resampling: Resampling, *, method: str, baseline: str
) -> Measurement:
    """B14: test accuracy at the last epoch of one method minus another, in points, paired by seed.

    Mean over the trainings of each race whose task is classification, then over races; trainings
    are resampled within each race. Diverged trainings count with the accuracy that they were left
    with. The reason holds each race, learning rates at the edge of their grid, and the gain on
    language races, which is no accuracy.

    Args:
        tables: with race and tuning.
        resampling: how the interval is made.
        method: name of the method in the tables.
        baseline: name of the method it is compared with.

    Raises:
        NoFitError: if no such race has both methods, one was not tuned, or there are too few seeds.
    """
    pairs, left_out = _pairs(tables, "classification", method, baseline)
    if pairs.empty:
        raise NoFitError(f"no classification race has trainings of {method} and {baseline}")
    pairs["gain"] = 100 * (pairs["test_accuracy"] - pairs["test_accuracy_baseline"])
    parts = [f"{method} minus {baseline}, paired by seed{_left_out_text(left_out, 'unpaired')}"]
    parts += [_race_text(race, rows, method, baseline) for race, rows in pairs.groupby("race")]
    parts += [_tuning_text(tables.require("tuning"), pairs, (method, baseline))]
    measured = resampling.measure(
        pairs,
        _mean_over_races(pairs),
        cluster=_TRAINING,
        strata=["race"],
        n=len(pairs),
        reason="; ".join(parts),
    )
    language = _language_text(tables, resampling, method, baseline)
    judged = method.startswith("spectral_newton") and baseline == "adamw"
    return replace(measured, reason=measured.reason + language, judged=judged)


def _pairs(tables: ClaimTables, task: str, method: str, baseline: str) -> tuple[pd.DataFrame, int]:
    """Last epochs of both methods side by side, and the number of trainings without the other.

    Columns of the baseline end in ``_baseline``.
    """
    table = tables.require("race")
    rows = table[(table["task"] == task) & table["method"].isin([method, baseline])]
    last = rows[rows["epoch"] == rows.groupby("race")["epoch"].transform("max")]
    sides = [last[last["method"] == name] for name in (method, baseline)]
    pairs = sides[0].merge(
        sides[1], on=_TRAINING, suffixes=("", "_baseline"), validate="one_to_one"
    )
    trainings = rows.drop_duplicates([*_TRAINING, "method"])
    return pairs, len(trainings) - 2 * len(pairs)


def _mean_over_races(pairs: pd.DataFrame) -> Callable[[Index], float]:
    """Mean of ``gain`` over the trainings of a race, then over races, as function of row numbers.

    The number of trainings of every race must be kept.
    """
    per_race = pairs.groupby("race")["gain"].transform("size").to_numpy(np.float64)
    weights: Vector = 1 / (per_race * pairs["race"].nunique())
    gain = pairs["gain"].to_numpy(np.float64)
    return lambda index: float(weights[index] @ gain[index])


def _race_text(race: object, rows: pd.DataFrame, method: str, baseline: str) -> str:
    columns = {method: "diverged", baseline: "diverged_baseline"}
    counts = {name: int(rows[column].sum()) for name, column in columns.items()}
    diverged = "".join(
        f", {count} of {name} diverged but counted" for name, count in counts.items() if count
    )
    return (
        f"{race}: {rows['model'].iloc[0]}, {rows['train_size'].iloc[0]} training samples, "
        f"{rows['steps'].iloc[0]} steps; {len(rows)} seeds, {baseline} "
        f"{100 * rows['test_accuracy_baseline'].mean():.2f} %, gain {rows['gain'].mean():.3g} "
        f"points, one test sample {100 / rows['n_test'].min():.2g} points{diverged}"
    )


def _left_out_text(count: int, why: str) -> str:
    return f", {count} {why} left out" if count else ""


def _tuning_text(tuning: pd.DataFrame, pairs: pd.DataFrame, methods: tuple[str, str]) -> str:
    """Size of the grids, and which chosen learning rates lie at an edge."""
    sizes, edges = set(), []
    for race in sorted(pairs["race"].unique()):
        for method in methods:
            grid = tuning[(tuning["race"] == race) & (tuning["method"] == method)]
            chosen = grid.loc[grid["chosen"].astype(bool), "learning_rate"]
            if len(chosen) != 1:
                raise NoFitError(f"{len(chosen)} choices of {method} in race {race}, not one")
            sizes.add(int(grid["trainings"].sum()))
            edge = _edge(float(chosen.iloc[0]), grid["learning_rate"])
            if edge:
                edges.append(f"{method} in {race} ({chosen.iloc[0]:g}, {edge})")
    budget = f"tuned on {' or '.join(map(str, sorted(sizes)))} trainings each"
    if not edges:
        return f"{budget}, a choice that no interval holds; learning rates inside their grids"
    return f"{budget}, a choice that no interval holds; at the edge of its grid: {', '.join(edges)}"


def _edge(chosen: float, rates: "pd.Series[float]") -> str:
    """Which edge of the grid is chosen; empty inside."""
    if len(rates.unique()) == 1:
        return "the only one"
    return {float(rates.min()): "the lowest", float(rates.max()): "the highest"}.get(chosen, "")


def _language_text(tables: ClaimTables, resampling: Resampling, method: str, baseline: str) -> str:
    """Loss of the baseline minus that of the method on language races; empty without them."""
    pairs, unpaired = _pairs(tables, "language_modelling", method, baseline)
    finite = pairs[["test_loss", "test_loss_baseline"]].notna().all(axis=1)
    kept = pairs[finite].reset_index(drop=True)
    if kept.empty:
        return ""
    kept["gain"] = kept["test_loss_baseline"] - kept["test_loss"]
    value = resampling.text(kept, _mean_over_races(kept), cluster=_TRAINING, strata=["race"])
    return (
        f"; not judged, in nats per token: loss of {baseline} minus that of {method} "
        f"({', '.join(sorted(kept['race'].unique()))}, {len(kept)} pairs"
        f"{_left_out_text(unpaired, 'unpaired')}"
        f"{_left_out_text(len(pairs) - len(kept), 'with a diverged training')}) {value}"
    )
