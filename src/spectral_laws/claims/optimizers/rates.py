"""Measurements of the claim on learning rates per layer: B15."""

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import Index, Resampling
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.claims.verdicts import Measurement
from spectral_laws.errors import NoFitError

_BASELINE = "none"
_NETWORK = ["race", "model"]
_TRAINING = [*_NETWORK, "seed"]
_FEWEST = 2
"""Layers with a factor: a single one has s = sbar, and its factor is 1."""


def measure_rate_gain(
    tables: ClaimTables, resampling: Resampling, *, variant: str | None = None
) -> Measurement:
    """B15: test accuracy with per-layer rates minus without, in points, paired by training.

    Mean over the positive exponents b of a training, or one variant; then over trainings, which
    are resampled within each race and network. Diverged trainings count with the accuracy that
    they were left with.

    Args:
        tables: with layer_rates.
        resampling: how the interval is made.
        variant: ``inverse``, ``random`` or ``b = ...``; None for all positive exponents.

    Raises:
        NoFitError: if the variant was not trained, no layer's rate was changed, or a network was
            trained too few times.
    """
    gains, positive, note = _gains(tables)
    chosen = positive if variant is None else [variant]
    if variant is not None and variant not in gains:
        raise NoFitError(f"no training with layer rates {variant!r}")
    values = gains[chosen].mean(axis=1).to_numpy(np.float64)
    return resampling.measure(
        gains,
        lambda index: float(values[index].mean()),
        cluster=_TRAINING,
        strata=_NETWORK,
        n=len(gains),
        reason=f"{_each(gains)}; {note}",
        scope=", ".join(chosen) if variant is None else "",
    )


def measure_best_rate(tables: ClaimTables, resampling: Resampling) -> Measurement:
    """Beside B15: the positive exponent with the largest mean gain.

    A maximum over exponents, chosen by the same test accuracy: biased upwards. The choice is made
    again in every resample.

    Raises:
        NoFitError: as :func:`measure_rate_gain`.
    """
    gains, positive, note = _gains(tables)
    values = gains[positive].to_numpy(np.float64)

    def best(index: Index) -> float:
        return float(values[index].mean(axis=0).max())

    return resampling.measure(
        gains,
        best,
        cluster=_TRAINING,
        strata=_NETWORK,
        n=len(gains),
        reason=f"{_each(gains)}; {note}",
        scope=positive[int(values.mean(axis=0).argmax())],
    )


def _gains(tables: ClaimTables) -> tuple[pd.DataFrame, list[str], str]:
    """Points gained per training and variant, the positive exponents, and what it rests on."""
    table = tables.require("layer_rates")
    positive = table.loc[table["exponent"] > 0, ["variant", "exponent"]].drop_duplicates()
    names = [str(name) for name in positive.sort_values("exponent")["variant"]]
    if not names:
        raise NoFitError("no training with a positive exponent of the layer rates")
    wide = table.pivot(index=_TRAINING, columns="variant", values="test_accuracy")  # noqa: PD010
    if _BASELINE not in wide:
        raise NoFitError("no training without layer rates to compare with")
    scaled = table.groupby(_TRAINING)["n_scaled"].max() >= _FEWEST
    complete = scaled & wide[[_BASELINE, *names]].notna().all(axis=1)
    if not complete.any():
        raise NoFitError(
            f"none of {len(wide)} trainings has {_FEWEST} layers with a fitted s > 0 and all rates"
        )
    accuracy = 100 * wide[complete]
    gains = accuracy.sub(accuracy[_BASELINE], axis=0).dropna(axis=1).reset_index()
    left_out = f", {len(wide) - len(gains)} without" if len(wide) > len(gains) else ""
    pairs = gains[_NETWORK].drop_duplicates().itertuples(index=False)
    networks = ", ".join(f"{pair.model} in {pair.race}" for pair in pairs)
    note = (
        f"{len(gains)} trainings ({networks}) with and without"
        f"{left_out}; accuracy without {accuracy[_BASELINE].mean():.2f} %, one test sample "
        f"{100 / table['n_test'].min():.2g} points{_diverged(table)}"
    )
    return gains, names, note


def _diverged(table: pd.DataFrame) -> str:
    """'; diverged but counted: inverse 2' by variant; empty where none diverged."""
    counts = table.groupby("variant")["diverged"].sum()
    parts = [f"{name} {int(count)}" for name, count in counts.items() if count]
    return f"; diverged but counted: {', '.join(parts)}" if parts else ""


def _each(gains: pd.DataFrame) -> str:
    """Mean gain of each variant: 'mean gain at b = 0.5: -0.1, inverse: 0.2 points'."""
    variants = [name for name in gains if name not in (*_TRAINING, *_NETWORK, _BASELINE)]
    parts = ", ".join(f"{name}: {gains[name].mean():.2g}" for name in variants)
    return f"mean gain at {parts} points, at the rate tuned without, which favours no gain"
