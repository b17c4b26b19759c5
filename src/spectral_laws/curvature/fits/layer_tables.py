"""What the fits of measured spectra share: whose rows are fitted, and slopes with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.fitting.bootstrap import Interval, bootstrap_slope_interval
from spectral_laws.fitting.loglog import MINIMUM_POINTS, LogLogFit, fit_loglog
from spectral_laws.rng import generator

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

LAYER = ("model", "seed", "layer_index", "layer", "kind", "role")
"""Columns that say which layer of which network a row is about."""

_WHOLE = ("seed", "epoch", "layer_index", "index", "n_rows", "n_columns", "n_below_rank")
_TEXTS = (
    *("id", "model", "architecture", "layer", "kind", "role", "part", "factor", "experiment"),
    *("variant", "status", "reason", "rank_model"),
)
"""Columns of whole numbers, and those that may hold text; all others are numbers or truths."""

SIGMA, EXACT = "singular_value", "directional_curvature"
"""Columns of sigma_k and h_k."""


@dataclass(frozen=True)
class MeasuredLayer:
    """The rows of one layer, in order of the index k."""

    record: dict[str, object]  # the columns that are the same in all of its rows
    # The table's rows, one per singular direction; none where the gradient is zero.
    rows: pd.DataFrame

    @property
    def name(self) -> str:
        """The layer in words."""
        return layer_name(self.record)

    @property
    def path(self) -> tuple[str | int, ...]:
        """Name of the layer's random streams."""
        seed, index = str(self.record["seed"]), str(self.record["layer_index"])
        return (str(self.record["model"]), int(seed), int(index))

    def n_usable(self, top_k: int) -> int:
        """How many of the leading directions have sigma > 0 and h > 0."""
        sigma, h = (self.values(name)[:top_k] for name in (SIGMA, EXACT))
        return int(np.count_nonzero((sigma > 0) & (h > 0)))

    def values(self, column: str) -> Vector:
        """A column as numbers, missing ones NaN."""
        return self.rows[column].to_numpy(np.float64)

    def require_gradient(self) -> None:
        """Raise NoFitError if the layer has no singular direction, because its gradient is zero."""
        if self.rows.empty:
            raise NoFitError("the layer's gradient is zero: it has no singular direction")


@dataclass(frozen=True)
class SlopeBootstrap:
    """How intervals of slopes are made: by resampling pairs."""

    confidence: float
    resamples: int
    seed: int

    def fit(self, x: Vector, y: Vector, *stream: str | int) -> tuple[LogLogFit, Interval]:
        """The slope of log y on log x, and its interval."""
        fit = fit_loglog(x, y)
        interval = bootstrap_slope_interval(
            x,
            y,
            confidence=self.confidence,
            resamples=self.resamples,
            generator=generator(self.seed, *stream),
        )
        return fit, interval


def require_entries(used: Mask, condition: str) -> None:
    """Raise NoFitError if fewer than 5 directions are ``used``, those that have ``condition``.

    The message counts them among all directions, which a fit to the used ones cannot know.
    """
    n_used = int(np.count_nonzero(used))
    if n_used < MINIMUM_POINTS:
        raise NoFitError(
            f"{n_used} of {used.size} directions have {condition}; a fit needs {MINIMUM_POINTS}"
        )


def require_columns(table: pd.DataFrame, columns: Sequence[str], *, name: str) -> None:
    """Raise DataError if ``table``, called ``name``, lacks a column or a number."""
    missing = [column for column in dict.fromkeys(columns) if column not in table.columns]
    if missing:
        raise DataError(f"{name} table: no column {', '.join(missing)}")
    for column in columns:
        whole, values = column in _WHOLE, table[column]
        number = pd.api.types.is_integer_dtype if whole else pd.api.types.is_numeric_dtype
        if column not in _TEXTS and len(table) and not number(values):
            kind = "whole numbers" if whole else "numbers"
            raise DataError(f"{name} table: column {column} holds something else than {kind}")
        if whole and (values < 0).any():
            raise DataError(f"{name} table: column {column} has a negative number")


def final_networks(spectra: pd.DataFrame, *, part: str = "whole") -> pd.DataFrame:
    """Rows of networks at the end of their training, measured on one part of the batch."""
    require_columns(spectra, ("final", "part"), name="spectra")
    return spectra[spectra["final"].astype(bool) & (spectra["part"] == part)]


def count_layers(table: pd.DataFrame, *, by: Sequence[str] = LAYER) -> int:
    """Number of layers of all networks in the table."""
    require_columns(table, by, name="spectra")
    return int(table.groupby(list(by), sort=False, dropna=False).ngroups)


def measured_layers(
    spectra: pd.DataFrame, *, by: Sequence[str] = LAYER, also: Sequence[str] = ()
) -> Iterator[MeasuredLayer]:
    """The layers of a spectra table, ordered by ``by`` (model, seed, depth, ...).

    A layer whose gradient is zero has no singular direction. In the table it is one row with sigma
    = h = 0, which is no measurement: such a layer comes without rows. ``by`` tells layers apart;
    ``also`` are further columns that are the same in all rows of a layer.
    """
    require_columns(spectra, (*by, *also, "index", SIGMA, EXACT), name="spectra")
    for _, group in spectra.groupby(list(by), sort=True, dropna=False):
        rows = group.sort_values("index")
        layer = MeasuredLayer({column: rows[column].iloc[0] for column in (*by, *also)}, rows)
        if not np.array_equal(layer.values("index"), np.arange(1, len(rows) + 1)):
            raise DataError(
                f"spectra table: the index of {layer.name} is not 1, 2, ..., {len(rows)}"
            )
        check_finite(f"singular values of {layer.name}", layer.values(SIGMA))
        check_finite(f"directional curvatures of {layer.name}", layer.values(EXACT))
        if (layer.values(SIGMA) == 0).all():
            layer = MeasuredLayer(layer.record, rows.iloc[:0])
        yield layer


def layer_name(record: dict[str, object]) -> str:
    """A layer in words, from the columns of its row."""
    return f"{record['model']}, seed {record['seed']}, layer {record['layer']}"
