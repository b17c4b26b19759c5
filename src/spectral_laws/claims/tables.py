"""The measured tables the claims rest on; any of them may be absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from spectral_laws.artifacts import read_table
from spectral_laws.errors import DataError, NoFitError

_STUDY = (
    "study",
    "features",
    "degree",
    "dimension",
    "feature_dimension",
    "n_directions",
    "gamma",
    "readout",
    "noise",
    "seed",
)
_LAYER = ("model", "seed", "layer_index", "layer", "role")
_DIRECTION = (*_STUDY, "sample_size", "direction")
COLUMNS: dict[str, tuple[str, ...]] = {
    "metrics": (*_STUDY, "sample_size", "second_layer", "mse"),
    "directions": (*_DIRECTION, "cos2", "predicted_cos2"),
    "thresholds": (
        *(*_STUDY, "direction", "weight"),
        *("half_recovery", "censored", "predicted_half_recovery"),
    ),
    "baselines": (*_STUDY, "sample_size", "method", "mse"),
    "perturbation": (
        *(*_DIRECTION, "operator_norm", "sin_theta"),
        *("expansion_error", "davis_kahan", "resolved"),
    ),
    "error_exponents": (
        *("gamma", "n_directions", "seed", "first", "last"),
        *("second_layer", "exponent"),
    ),
    "spectra": (
        *(*_LAYER, "final", "part", "index", "singular_value"),
        *("kronecker", "kronecker_true", "rho_delta"),
    ),
    "exponents": (
        *(*_LAYER, "epoch", "final", "n_directions", "status", "alpha", "s"),
        *("transfer_error", "transfer_error_sorted"),
        *("participation_ratio", "participation_bound", "rank_model"),
    ),
    "ladder": (*_LAYER, "ratio", "median", "slope", "slope_low", "slope_high", "status"),
    "decomposition": (*_LAYER, "identity_gap", "kronecker_gap", "r_kronecker", "status"),
    "independence": (
        *_LAYER,
        "error_same",
        "error_halves",
        "error_repeat",
        "error_permuted",
        "error_free",
    ),
    "weights": (*_LAYER, "decay", "tail_exponent"),
    "factor_models": (*_LAYER, "factor", "same"),
    "finite_differences": (
        *(*_LAYER, "singular_value", "directional_curvature"),
        *("finite_difference", "step"),
    ),
    "experiments": (
        *("experiment", "over", "variant", "value", *_LAYER, "final", "status"),
        *("alpha", "participation_ratio", "phi_a", "phi_delta"),
    ),
    "race": (
        *("race", "task", "model", "train_size", "steps", "method", "seed", "epoch"),
        *("test_loss", "test_accuracy", "diverged", "n_test"),
    ),
    "tuning": ("race", "method", "learning_rate", "trainings", "chosen"),
    "layer_rates": (
        *("race", "model", "seed", "variant", "exponent"),
        *("n_scaled", "test_accuracy", "diverged", "n_test"),
    ),
}
"""Columns each table must have; it may have more."""


@dataclass(frozen=True)
class ClaimTables:
    """Tables of all jobs; None where a step was not run.

    Attributes:
        metrics: test errors of recovery, one row per teacher, sample size and second layer.
        directions: overlaps, one row per teacher, sample size and direction.
        thresholds: half-recovery sample sizes, one row per teacher and direction.
        baselines: kernels and other methods, one row per teacher, sample size and method.
        perturbation: expansion and bound, one row per teacher, sample size and direction.
        error_exponents: of the sharp theory, one row per gamma, width, draw and second layer.
        spectra: curvatures, one row per network, part of the batch, layer and direction.
        exponents: curvature exponents, one row per network, epoch and layer.
        ladder: rungs between two curvatures, one row per trained network, layer and ratio.
        decomposition: what alpha is made of, one row per trained network and layer.
        independence: errors of s = alpha gamma, one row per trained network and layer.
        weights: singular values of the weights, one row per trained network and layer.
        factor_models: rank models of the Kronecker factors, one row per layer and factor.
        finite_differences: the negative control, one row per network, layer and direction.
        experiments: exponents of the networks of each experiment, side by side.
        race: trainings of every tuned optimizer, one row per training and epoch.
        tuning: trainings on the grids of the optimizers, one row per training.
        layer_rates: trainings with learning rates per layer, one row per training.

    Raises:
        DataError: if a table lacks a column of :data:`COLUMNS`.
    """

    metrics: pd.DataFrame | None = None
    directions: pd.DataFrame | None = None
    thresholds: pd.DataFrame | None = None
    baselines: pd.DataFrame | None = None
    perturbation: pd.DataFrame | None = None
    error_exponents: pd.DataFrame | None = None
    spectra: pd.DataFrame | None = None
    exponents: pd.DataFrame | None = None
    ladder: pd.DataFrame | None = None
    decomposition: pd.DataFrame | None = None
    independence: pd.DataFrame | None = None
    weights: pd.DataFrame | None = None
    factor_models: pd.DataFrame | None = None
    finite_differences: pd.DataFrame | None = None
    experiments: pd.DataFrame | None = None
    race: pd.DataFrame | None = None
    tuning: pd.DataFrame | None = None
    layer_rates: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        for name, columns in COLUMNS.items():
            table = getattr(self, name)
            missing = [c for c in columns if table is not None and c not in table.columns]
            if missing:
                raise DataError(f"{name} table: no column {', '.join(missing)}")

    def require(self, name: str) -> pd.DataFrame:
        """The table called ``name``.

        Raises:
            NoFitError: if it is absent or empty.
        """
        table = getattr(self, name)
        if table is None or table.empty:
            raise NoFitError(f"the {name} table is absent")
        return pd.DataFrame(table)


def read_claim_tables(paths: Sequence[Path]) -> ClaimTables:
    """Read Parquet files, each named after its table, as in ``metrics.parquet``.

    Raises:
        DataError: if a name is none of :data:`COLUMNS` or comes twice, a file is missing or
            damaged, or a table lacks a column.
    """
    tables: dict[str, pd.DataFrame] = {}
    for path in paths:
        name = path.stem
        if name not in COLUMNS:
            raise DataError(
                f"{path}: no claim rests on a table {name!r}; there are {', '.join(COLUMNS)}"
            )
        if name in tables:
            raise DataError(f"{path}: there is another {name} table")
        tables[name] = read_table(path)
    return ClaimTables(**tables)
