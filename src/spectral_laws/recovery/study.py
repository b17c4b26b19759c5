"""What every table of a recovery study shares: its teacher, its sample sizes, its first columns."""

from collections.abc import Sequence

import pandas as pd

from spectral_laws.errors import ConfigError
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.settings.recovery import TeacherFamily


def draw_teacher(family: TeacherFamily, *, dimension: int, replicate: int, seed: int) -> Teacher:
    """The teacher of one dimension and replicate, with true Hermite features.

    Two families that differ in readout or noise alone share directions, weights and inputs.
    """
    return Teacher.draw(
        dimension=dimension,
        degree=family.degree,
        n_directions=checked_width(family, dimension),
        gamma=family.gamma,
        rows=family.rows,
        readout=family.readout,
        noise=family.noise,
        seed=seed,
        replicate=replicate,
    )


def checked_width(family: TeacherFamily, dimension: int) -> int:
    """d1 of a family at one dimension."""
    width, size = family.n_directions(dimension), family.feature_dimension(dimension)
    if width > size:
        raise ConfigError(
            f"{width} directions are asked for at d = {dimension}, but there are only "
            f"D = {size} features"
        )
    return width


def tabulate(
    rows: Sequence[dict[str, object]],
    *,
    study_name: str,
    family: TeacherFamily,
    dimension: int,
    replicate: int,
) -> pd.DataFrame:
    """A table of ``rows`` behind the columns that say which study, teacher and seed they are of."""
    head = {
        "study": study_name,
        "features": family.features,
        "degree": family.degree,
        "dimension": dimension,
        "feature_dimension": family.feature_dimension(dimension),
        "n_directions": family.n_directions(dimension),
        "gamma": family.gamma,
        "readout": family.readout,
        "noise": family.noise,
        "seed": replicate,
    }
    return pd.DataFrame([head | row for row in rows])
