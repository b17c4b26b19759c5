"""Measurements of the claims on optimizers: Spectral Newton (B14), learning rates (B15)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from spectral_laws.claims.evidence import Evidence
from spectral_laws.claims.resampling import Cluster, Resampling, number
from spectral_laws.claims.selections import left_out_text
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError
from spectral_laws.fitting.slopes import Index, Vector

PAIR = Cluster("pairs of trainings", ("race", "seed"))
"""Trainings of a race that share a seed share initial weights and the order of the samples."""

_BASELINE = "none"
_NETWORK = ["race", "model"]
_TRAINING = Cluster("trainings", ("race", "model", "seed"))
_FEWEST = 2
"""Layers with a factor: a single one has s = sbar, and its factor is 1."""


def measure_gain(
    tables: ClaimTables, resampling: Resampling, *, method: str, baseline: str
) -> Measurement:
    """B14: test accuracy at the last epoch of one method minus another, in points, paired by seed.

    Mean over the trainings of each race whose task is classification, then over races; trainings
    are resampled within each race. Diverged trainings count with the accuracy that they were left
    with. Beside it stand each race, learning rates at the edge of their grid, and the gain on
    language races, which is no accuracy.
    """
    pairs, left_out = _pairs(tables, "classification", method, baseline)
    if pairs.empty:
        raise NoFitError(f"no classification race has trainings of {method} and {baseline}")
    pairs["gain"] = 100 * (pairs["test_accuracy"] - pairs["test_accuracy_baseline"])
    tuning = tables.require("tuning")
    beside: dict[str, Measurement] = {}
    for race, rows in pairs.groupby("race"):
        beside |= _of_race(str(race), rows, tuning, (method, baseline))
    measured = resampling.measure(
        pairs,
        _mean_over_races(pairs),
        units=PAIR.name,
        cluster=PAIR,
        strata=["race"],
        scope=_races(pairs) + left_out_text(left_out, "unpaired trainings"),
        judged=method.startswith("spectral_newton") and baseline == "adamw",
    )
    return replace(measured, beside=beside | _of_language(tables, resampling, method, baseline))


def _pairs(tables: ClaimTables, task: str, method: str, baseline: str) -> tuple[pd.DataFrame, int]:
    """Last epochs of both methods side by side, and the number of trainings without the other.

    Columns of the baseline end in ``_baseline``.
    """
    table = tables.require("race")
    rows = table[(table["task"] == task) & table["method"].isin([method, baseline])]
    last = rows[rows["epoch"] == rows.groupby("race")["epoch"].transform("max")]
    sides = [last[last["method"] == name] for name in (method, baseline)]
    pairs = sides[0].merge(
        sides[1], on=list(PAIR.columns), suffixes=("", "_baseline"), validate="one_to_one"
    )
    trainings = rows.drop_duplicates([*PAIR.columns, "method"])
    return pairs, len(trainings) - 2 * len(pairs)


def _mean_over_races(pairs: pd.DataFrame) -> Callable[[Index], float]:
    """Mean of ``gain`` over the trainings of a race, then over races, as function of row numbers.

    The number of trainings of every race must be kept.
    """
    per_race = pairs.groupby("race")["gain"].transform("size").to_numpy(np.float64)
    weights: Vector = 1 / (per_race * pairs["race"].nunique())
    gain = pairs["gain"].to_numpy(np.float64)
    return lambda index: float(weights[index] @ gain[index])


def _of_race(
    race: str, rows: pd.DataFrame, tuning: pd.DataFrame, methods: tuple[str, str]
) -> dict[str, Measurement]:
    """Gain and level of one race; where there are such, diverged trainings and rates at an edge.

    Raises:
        NoFitError: if a method has not one choice of its settings.
    """
    values = {
        "gain": rows["gain"].mean(),
        f"accuracy of {methods[1]} in %": 100 * rows["test_accuracy_baseline"].mean(),
    }
    budgets = set()
    for method, column in zip(methods, ("diverged", "diverged_baseline"), strict=True):
        if rows[column].any():
            values[f"diverged trainings of {method}, counted"] = rows[column].sum()
        grid = tuning[(tuning["race"] == race) & (tuning["method"] == method)]
        chosen = grid.loc[grid["chosen"].astype(bool), "learning_rate"]
        if len(chosen) != 1:
            raise NoFitError(f"{len(chosen)} choices of {method} in race {race}, not one")
        budgets.add(int(grid["trainings"].sum()))
        edge = _edge(float(chosen.iloc[0]), grid["learning_rate"])
        if edge:
            values[f"learning rate of {method}, {edge} of its grid"] = chosen.iloc[0]
    model, size, steps = rows[["model", "train_size", "steps"]].iloc[0]
    tuned = " or ".join(str(budget) for budget in sorted(budgets))
    scope = f"{model}, {size} training samples, {steps} steps, tuned on {tuned} trainings each"
    return {
        f"{race}, {name}": number(float(value), rows, PAIR.name, PAIR, scope)
        for name, value in values.items()
    }


def _races(pairs: pd.DataFrame) -> str:
    return ", ".join(sorted(pairs["race"].unique()))


def _edge(chosen: float, rates: "pd.Series[float]") -> str:
    """Which edge of the grid is chosen; empty inside."""
    if len(rates.unique()) == 1:
        return "the only one"
    return {float(rates.min()): "the lowest", float(rates.max()): "the highest"}.get(chosen, "")


def _of_language(
    tables: ClaimTables, resampling: Resampling, method: str, baseline: str
) -> dict[str, Measurement]:
    """Loss of the baseline minus that of the method on language races; empty without them."""
    pairs, unpaired = _pairs(tables, "language_modelling", method, baseline)
    finite = pairs[["test_loss", "test_loss_baseline"]].notna().all(axis=1)
    kept = pairs[finite].reset_index(drop=True)
    if kept.empty:
        return {}
    kept["gain"] = kept["test_loss_baseline"] - kept["test_loss"]
    scope = (
        _races(kept)
        + left_out_text(unpaired, "unpaired trainings")
        + left_out_text(len(pairs) - len(kept), "pairs with a diverged training")
    )
    gain = resampling.beside(
        kept, _mean_over_races(kept), units=PAIR.name, cluster=PAIR, strata=["race"], scope=scope
    )
    return {f"loss of {baseline} minus that of {method}, nats per token": gain}


def measure_rate_gain(
    tables: ClaimTables, resampling: Resampling, *, variant: str | None = None
) -> Measurement:
    """B15: test accuracy with per-layer rates minus without, in points, paired by training.

    Mean over the positive exponents b of a training, or one variant (``inverse``, ``random`` or
    ``b = ...``); then over trainings, which are resampled within each race and network. Diverged
    trainings count with the accuracy that they were left with. The rate was tuned without, which
    favours no gain.
    """
    gains, positive, scope = _gains(tables)
    if variant is not None and variant not in gains:
        raise NoFitError(f"no training with layer rates {variant!r}")
    chosen = positive if variant is None else [variant]
    values = gains[chosen].mean(axis=1).to_numpy(np.float64)
    return resampling.measure(
        gains,
        lambda index: float(values[index].mean()),
        units="trainings",
        cluster=_TRAINING,
        strata=_NETWORK,
        scope=scope if variant else f"{', '.join(chosen)}, {scope}",
        beside=_of_variants(tables.require("layer_rates"), gains, chosen),
    )


def measure_best_rate(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """The positive exponent with the largest mean gain.

    A maximum over exponents, chosen by the same test accuracy: biased upwards. The choice is made
    again in every resample.
    """
    gains, positive, scope = _gains(tables)
    values = gains[positive].to_numpy(np.float64)

    def best(index: Index) -> float:
        return float(values[index].mean(axis=0).max())

    return resampling.measure(
        gains,
        best,
        units="trainings",
        cluster=_TRAINING,
        strata=_NETWORK,
        scope=f"{positive[int(values.mean(axis=0).argmax())]}, {scope}",
    )


def _gains(tables: ClaimTables) -> tuple[pd.DataFrame, list[str], str]:
    """Points gained per training and variant, the positive exponents, and the networks."""
    table = tables.require("layer_rates")
    positive = table.loc[table["exponent"] > 0, ["variant", "exponent"]].drop_duplicates()
    names = [str(name) for name in positive.sort_values("exponent")["variant"]]
    if not names:
        raise NoFitError("no training with a positive exponent of the layer rates")
    key = list(_TRAINING.columns)
    wide = table.pivot(index=key, columns="variant", values="test_accuracy")  # noqa: PD010
    if _BASELINE not in wide:
        raise NoFitError("no training without layer rates to compare with")
    scaled = table.groupby(key)["n_scaled"].max() >= _FEWEST
    complete = scaled & wide[[_BASELINE, *names]].notna().all(axis=1)
    if not complete.any():
        raise NoFitError(
            f"none of {len(wide)} trainings has {_FEWEST} layers with a fitted s > 0 and all rates"
        )
    accuracy = 100 * wide[complete]
    gains = accuracy.sub(accuracy[_BASELINE], axis=0).dropna(axis=1).reset_index()
    networks = gains[_NETWORK].drop_duplicates().itertuples(index=False)
    scope = ", ".join(f"{model} in {race}" for race, model in networks)
    left_out = left_out_text(len(wide) - len(gains), "trainings without changed rates")
    return gains, names, scope + left_out


def _of_variants(
    table: pd.DataFrame, gains: pd.DataFrame, variants: list[str]
) -> dict[str, Measurement]:
    """Mean gain of each of several variants, and how many trainings diverged, where some did."""
    found: dict[str, Measurement] = {}
    for name in variants:
        if len(variants) > 1:
            gain = float(gains[name].mean())
            found[f"gain at {name}"] = number(gain, gains, "trainings", _TRAINING)
        rows = table[table["variant"] == name]
        if rows["diverged"].any():
            found[f"diverged trainings at {name}, counted"] = number(
                float(rows["diverged"].sum()), rows, "trainings", _TRAINING
            )
    return found


_SPECTRAL_NEWTON = "spectral_newton_2"
"""Of the exponents raced the paper's default, and that of convolutional layers."""

_over_adamw = partial(measure_gain, baseline="adamw")
_of_spectral_newton = partial(measure_gain, method=_SPECTRAL_NEWTON)

OPTIMIZERS: dict[str, Evidence] = {
    "B14": Evidence(
        partial(_over_adamw, method=_SPECTRAL_NEWTON),
        {
            "alpha = 1": partial(_over_adamw, method="spectral_newton_1"),
            "measured alpha of each layer (its measurement is in no budget)": partial(
                _over_adamw, method="spectral_newton_measured"
            ),
            "Muon minus AdamW": partial(_over_adamw, method="muon"),
            "SOAP minus AdamW": partial(_over_adamw, method="soap"),
            "SGD minus AdamW": partial(_over_adamw, method="sgd"),
            "SGD without momentum minus AdamW": partial(_over_adamw, method="sgd_by_damping"),
            "alpha = 2 minus Muon": partial(_of_spectral_newton, baseline="muon"),
            "alpha = 2 minus SGD": partial(_of_spectral_newton, baseline="sgd"),
        },
    ),
    "B15": Evidence(
        measure_rate_gain,
        {
            "best positive exponent, a maximum and so biased upwards": measure_best_rate,
            "inverse rates": partial(measure_rate_gain, variant="inverse"),
            "s exchanged at random among layers": partial(measure_rate_gain, variant="random"),
        },
    ),
}
"""How each claim on optimizers is measured."""
