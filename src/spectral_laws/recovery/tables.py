"""The tables of one teacher's recovery along its grid of sample sizes."""

from typing import NamedTuple

import pandas as pd

from spectral_laws.config import Estimator, Evaluation, TeacherFamily
from spectral_laws.recovery.overlaps import half_recovery
from spectral_laws.recovery.recover import SECOND_LAYERS, Recovery, recover_features
from spectral_laws.recovery.study import draw_teacher, tabulate
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.recovery.theory import thresholds

Rows = list[dict[str, object]]


class RecoveryTables(NamedTuple):
    """Tables of one teacher; each starts with the columns of :mod:`.study`.

    Attributes:
        metrics: one row per sample size and second layer: errors, overlaps, edges, convergence.
        directions: one row per sample size and teacher direction (1-based); ``matched_overlap``
            and ``eigenvalue`` are those of the estimate of the same rank.
        thresholds: one row per teacher direction; ``half_recovery`` is missing where ``censored``
            is ``below`` or ``above`` (the grid does not hold the crossing).
    """

    metrics: pd.DataFrame
    directions: pd.DataFrame
    thresholds: pd.DataFrame


def tabulate_recovery(
    study_name: str,
    family: TeacherFamily,
    estimator: Estimator,
    evaluation: Evaluation,
    *,
    dimension: int,
    replicate: int,
    seed: int,
    device: str = "cpu",
) -> RecoveryTables:
    """Draw the teacher of (dimension, replicate) and recover it at every sample size of the grid.

    Args:
        study_name: first column of the tables.
        family: the teachers and the grid n = d^a.
        estimator: tolerance, iterations and memory of the eigenvectors.
        evaluation: test set and scalar readout.
        dimension: d.
        replicate: index of the teacher and sample streams, from 0.
        seed: root of the random streams.
        device: torch device.

    Raises:
        ConfigError: if the family does not fit the dimension, or the device is missing.
        NumericalError: if the eigenvectors do not converge.
    """
    teacher = draw_teacher(family, dimension=dimension, replicate=replicate, seed=seed)
    recoveries = recover_features(
        teacher,
        family.sample_exponents.sample_sizes(dimension),
        seed=seed,
        replicate=replicate,
        tolerance=estimator.tolerance,
        max_iterations=estimator.max_iterations,
        memory_mb=estimator.memory_mb,
        test_size=evaluation.test_size,
        readout_size=evaluation.readout_size,
        readout_degree=evaluation.readout_degree,
        ridge=evaluation.ridge,
        device=device,
    )

    def table(rows: Rows) -> pd.DataFrame:
        return tabulate(
            rows, study_name=study_name, family=family, teacher=teacher, replicate=replicate
        )

    halves = table(_threshold_rows(teacher, recoveries))
    halves["half_recovery"] = halves["half_recovery"].astype("float64")
    return RecoveryTables(
        table([row for recovery in recoveries for row in _metric_rows(recovery)]),
        table([row for recovery in recoveries for row in _direction_rows(teacher, recovery)]),
        halves,
    )


def _metric_rows(recovery: Recovery) -> Rows:
    shared = {
        "feature_overlap": recovery.feature_overlap,
        "n_recovered": recovery.n_recovered,
        "n_outliers": recovery.n_outliers,
        "tail_mse": recovery.tail_mse,
        "edge_low": recovery.edges[0],
        "edge_high": recovery.edges[1],
        "iterations": recovery.iterations,
        "residual": recovery.residual,
    }
    return [
        {"sample_size": recovery.sample_size, "second_layer": name, "mse": recovery.mse[name]}
        | shared
        for name in SECOND_LAYERS
    ]


def _direction_rows(teacher: Teacher, recovery: Recovery) -> Rows:
    limits = thresholds(teacher.weights, teacher.feature_dimension)
    return [
        {
            "sample_size": recovery.sample_size,
            "direction": i + 1,
            "weight": float(teacher.weights[i]),
            "cos2": float(recovery.cos2[i]),
            "matched_overlap": float(recovery.matched_overlap[i]),
            "eigenvalue": float(recovery.eigenvalues[i]),
            "threshold": float(limits[i]),
        }
        for i in range(teacher.n_directions)
    ]


def _threshold_rows(teacher: Teacher, recoveries: list[Recovery]) -> Rows:
    limits = thresholds(teacher.weights, teacher.feature_dimension)
    sizes = [recovery.sample_size for recovery in recoveries]
    rows: Rows = []
    for i in range(teacher.n_directions):
        half, censored = half_recovery(sizes, [recovery.cos2[i] for recovery in recoveries])
        rows.append(
            {
                "direction": i + 1,
                "weight": float(teacher.weights[i]),
                "threshold": float(limits[i]),
                "half_recovery": half,
                "censored": censored,
            }
        )
    return rows
