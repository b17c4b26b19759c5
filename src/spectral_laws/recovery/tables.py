"""The tables of teachers' recovery along their grids of sample sizes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.errors import ConfigError
from spectral_laws.recovery.evaluate import Recovery
from spectral_laws.recovery.overlaps import half_recovery
from spectral_laws.recovery.recover import recover_equivalent, recover_features
from spectral_laws.recovery.scaling_laws import thresholds
from spectral_laws.recovery.study import checked_width, draw_teacher, tabulate
from spectral_laws.recovery.teacher import draw_weights
from spectral_laws.recovery.theory import SECOND_LAYERS
from spectral_laws.rng import generator
from spectral_laws.settings.recovery import Estimator, Evaluation, TeacherFamily
from spectral_laws.tables.schemas import load_schema

Rows = list[dict[str, object]]
Vector = NDArray[np.float64]


class RecoveryTables(NamedTuple):
    """Tables of some teachers; each starts with the columns of :mod:`.study`."""

    # One row per sample size and second layer: errors, overlaps, edges, convergence.
    metrics: pd.DataFrame
    # One row per sample size and teacher direction (1-based); ``matched_overlap``,
    # ``eigenvalue`` and ``localisation`` are those of the estimate of the same rank.
    directions: pd.DataFrame
    # One row per teacher direction; ``half_recovery`` is missing where ``censored`` is
    # ``below`` or ``above`` (the grid does not hold the crossing), and likewise
    # ``predicted_half_recovery``, from the sharp theory on the same grid.
    thresholds: pd.DataFrame


def tabulate_recovery(
    study_name: str,
    family: TeacherFamily,
    estimator: Estimator,
    evaluation: Evaluation,
    *,
    dimension: int,
    replicates: Sequence[int],
    seed: int,
    device: str = "cpu",
) -> RecoveryTables:
    """Draw teachers of one dimension and recover each at every sample size of the grid.

    A teacher of equivalent features has the weights of the one with Hermite features.
    ``replicates`` are the indices of the teachers and sample streams, from 0.
    """
    if not replicates:
        raise ConfigError(f"{study_name}: no teacher is asked for, the last is before the first")
    parts = [
        _tabulate_teacher(
            study_name,
            family,
            *_recover(
                family,
                estimator,
                evaluation,
                dimension=dimension,
                replicate=replicate,
                seed=seed,
                device=device,
            ),
            dimension=dimension,
            replicate=replicate,
        )
        for replicate in replicates
    ]
    whole = [pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True)]
    return RecoveryTables(*whole)


def _recover(
    family: TeacherFamily,
    estimator: Estimator,
    evaluation: Evaluation,
    *,
    dimension: int,
    replicate: int,
    seed: int,
    device: str,
) -> tuple[Vector, list[Recovery]]:
    """Weights of one teacher, and its recovery at every sample size."""
    sizes = family.sample_exponents.sample_sizes(dimension)
    sample: dict[str, Any] = {
        "memory_mb": estimator.memory_mb,
        "test_size": evaluation.test_size,
        "readout_size": evaluation.readout_size,
        "readout_degree": evaluation.readout_degree,
        "ridge": evaluation.ridge,
        "seed": seed,
        "device": device,
    }
    if family.features == "hermite":
        teacher = draw_teacher(family, dimension=dimension, replicate=replicate, seed=seed)
        return teacher.weights, recover_features(
            teacher,
            sizes,
            replicate=replicate,
            tolerance=estimator.tolerance,
            max_iterations=estimator.max_iterations,
            **sample,
        )
    key = (family.degree, dimension, replicate)
    width, size = checked_width(family, dimension), family.feature_dimension(dimension)
    weights = draw_weights(width, family.gamma, generator(seed, "teacher", *key))
    return weights, recover_equivalent(
        weights,
        sizes,
        feature_dimension=size,
        readout=family.readout,
        noise=family.noise,
        stream=key,
        tolerance=estimator.equivalent_tolerance,
        **sample,
    )


def _tabulate_teacher(
    study_name: str,
    family: TeacherFamily,
    weights: Vector,
    recoveries: list[Recovery],
    *,
    dimension: int,
    replicate: int,
) -> RecoveryTables:
    def table(rows: Rows) -> pd.DataFrame:
        return tabulate(
            rows, study_name=study_name, family=family, dimension=dimension, replicate=replicate
        )

    limits = thresholds(weights, family.feature_dimension(dimension))
    halves = table(_threshold_rows(weights, limits, recoveries))
    return RecoveryTables(
        table([row for recovery in recoveries for row in _metric_rows(recovery)]),
        table(
            [row for recovery in recoveries for row in _direction_rows(weights, limits, recovery)]
        ),
        load_schema("recovery/thresholds").frame(halves),
    )


def _metric_rows(recovery: Recovery) -> Rows:
    shared: dict[str, object] = {
        "feature_overlap": recovery.feature_overlap,
        "predicted_overlap": float(recovery.predicted_cos2.mean()),
        "n_recovered": recovery.n_recovered,
        "n_outliers": int(recovery.outside.sum()),
        "n_spurious": int(recovery.spurious.sum()),
        "tail_mse": recovery.tail_mse,
        "edge_low": recovery.prediction.edges[0],
        "edge_high": recovery.prediction.edges[1],
        "iterations": recovery.estimate.iterations,
        "residual": recovery.estimate.residual,
    }
    rows: Rows = [
        {
            "sample_size": recovery.sample_size,
            "second_layer": name,
            "mse": recovery.mse[name],
            "predicted_mse": recovery.predicted_mse[name],
        }
        for name in SECOND_LAYERS
    ]
    return [row | shared for row in rows]


def _direction_rows(weights: Vector, limits: Vector, recovery: Recovery) -> Rows:
    estimate = recovery.estimate
    return [
        {
            "sample_size": recovery.sample_size,
            "direction": i + 1,
            "weight": float(weights[i]),
            "cos2": float(recovery.cos2[i]),
            "predicted_cos2": float(recovery.predicted_cos2[i]),
            "matched_overlap": float(estimate.matched_overlap[i]),
            "eigenvalue": float(estimate.eigenvalues[i]),
            "localisation": float(estimate.localisation[i]),
            "threshold": float(limits[i]),
        }
        for i in range(len(weights))
    ]


def _threshold_rows(weights: Vector, limits: Vector, recoveries: list[Recovery]) -> Rows:
    sizes = [recovery.sample_size for recovery in recoveries]
    rows: Rows = []
    for i, weight in enumerate(weights):
        half, censored = half_recovery(sizes, [recovery.cos2[i] for recovery in recoveries])
        predicted, _ = half_recovery(sizes, [recovery.predicted_cos2[i] for recovery in recoveries])
        rows.append(
            {
                "direction": i + 1,
                "weight": float(weight),
                "threshold": float(limits[i]),
                "half_recovery": half,
                "censored": censored,
                "predicted_half_recovery": predicted,
            }
        )
    return rows
