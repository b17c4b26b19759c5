"""What every table of a recovery study shares: its teacher, its sample sizes, its first columns."""

from collections.abc import Sequence

import pandas as pd

from spectral_laws.config import TeacherFamily
from spectral_laws.errors import ConfigError
from spectral_laws.recovery.teacher import Teacher

STUDY_COLUMNS = (
    "study",
    "degree",
    "dimension",
    "feature_dimension",
    "n_directions",
    "gamma",
    "readout",
    "seed",
)


def draw_teacher(family: TeacherFamily, *, dimension: int, replicate: int, seed: int) -> Teacher:
    """The teacher of one dimension and replicate.

    Two families that differ in the readout alone share directions, weights and inputs.

    Raises:
        ConfigError: if there are fewer features than directions.
    """
    width, size = family.n_directions(dimension), family.feature_dimension(dimension)
    if width > size:
        raise ConfigError(
            f"width_exponent {family.width_exponent} asks for d1 = {width} directions at "
            f"d = {dimension}, but there are only D = {size} features"
        )
    return Teacher.draw(
        dimension=dimension,
        degree=family.degree,
        n_directions=width,
        gamma=family.gamma,
        rows=family.rows,
        readout=family.readout,
        seed=seed,
        replicate=replicate,
    )


def tabulate(
    rows: Sequence[dict[str, object]],
    *,
    study_name: str,
    family: TeacherFamily,
    teacher: Teacher,
    replicate: int,
) -> pd.DataFrame:
    """A table of ``rows`` behind the columns that say which study, teacher and seed they are of."""
    head = {
        "study": study_name,
        "degree": teacher.degree,
        "dimension": teacher.dimension,
        "feature_dimension": teacher.feature_dimension,
        "n_directions": teacher.n_directions,
        "gamma": family.gamma,
        "readout": teacher.readout,
        "seed": replicate,
    }
    return pd.DataFrame([head | row for row in rows])
