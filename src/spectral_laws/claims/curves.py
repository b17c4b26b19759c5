"""Curves of several teachers along the sample sizes, and where their mean crosses a level."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from spectral_laws.claims.resampling import TEACHER
from spectral_laws.fitting.crossings import first_crossing
from spectral_laws.fitting.slopes import Index, Vector


@dataclass(frozen=True)
class TeacherCurves:
    """Curves of the teachers of one study.

    The mean over the teachers of a dimension is what crosses a level: at small d single teachers
    are caught by chance, from the first sample size on or long before the others.

    Attributes:
        rows: the columns of TEACHER, one row per curve, of the dimensions whose mean curve crosses
            every level inside the grid.
        sizes: sample sizes of each dimension.
        values: (teachers, sample sizes) of each dimension, in the order of ``rows``.
        left_out: the other dimensions.
    """

    rows: pd.DataFrame
    sizes: dict[int, Vector]
    values: dict[int, Vector]
    left_out: list[int]

    @classmethod
    def of(cls, table: pd.DataFrame, column: str, *, levels: Sequence[float]) -> "TeacherCurves":
        """Curves of ``column``; every teacher of a dimension has the same sample sizes."""
        sizes, values, kept, left_out = {}, {}, [], []
        for dimension, group in table.groupby("dimension"):
            d = int(str(dimension))
            # pivot refuses two rows of one seed and sample size, pivot_table would average them
            wide = group.pivot(index="seed", columns="sample_size", values=column)  # noqa: PD010
            sizes[d], values[d] = wide.columns.to_numpy(np.float64), wide.to_numpy(np.float64)
            mean = values[d].mean(axis=0)
            if any(first_crossing(sizes[d], mean, level) is None for level in levels):
                left_out.append(d)
                continue
            head = {"degree": group["degree"].iloc[0], "dimension": d, "seed": wide.index}
            kept.append(pd.DataFrame(head).assign(place=np.arange(len(wide))))
        columns = [*TEACHER.columns, "place"]
        rows = pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(columns=columns)
        return cls(rows, sizes, values, left_out)

    @property
    def dimensions(self) -> list[int]:
        """The dimensions that count, increasing."""
        return sorted(int(d) for d in self.rows["dimension"].unique())

    def log_crossings(self, index: Index, level: float) -> Vector:
        """Log n at the crossing of each dimension's mean curve over the rows ``index``.

        One entry per dimension of :attr:`dimensions`, NaN where there is no crossing.
        """
        dimension, place = (
            self.rows[name].to_numpy(np.intp)[index] for name in ("dimension", "place")
        )
        sizes = [
            first_crossing(self.sizes[d], self.values[d][place[dimension == d]].mean(axis=0), level)
            for d in self.dimensions
        ]
        return np.array([math.nan if n is None else math.log(n) for n in sizes])

    def text(self) -> str:
        """The dimensions that count and those that do not, for a scope."""
        left = f", no crossing inside the grid at d = {self.left_out}" if self.left_out else ""
        return f"d = {self.dimensions}{left}"
