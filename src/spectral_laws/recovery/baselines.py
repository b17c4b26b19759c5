"""The baselines' table: what methods without spectral recovery make of the same samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.kernels import Kernel, baseline_kernels, fit_kernel_ridge
from spectral_laws.recovery.network import fit_network
from spectral_laws.recovery.random_features import RandomFeatures, fit_random_features
from spectral_laws.recovery.readout import normalised_mse
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher, tabulate
from spectral_laws.recovery.teacher import Teacher
from spectral_laws.rng import torch_seed
from spectral_laws.settings.recovery import Baselines, Evaluation, TeacherFamily

METHODS = ("polynomial", "arc_cosine", "rbf", "random_features", "network")
_MIN_NETWORK_SAMPLES = 20
_TEST_ROWS = 1024  # test features at a time: for all of them they would fill hundreds of megabytes

Rows = list[dict[str, object]]
Matrix = NDArray[np.float64]


def tabulate_baselines(
    study_name: str,
    family: TeacherFamily,
    evaluation: Evaluation,
    baselines: Baselines,
    *,
    dimension: int,
    replicates: Sequence[int],
    seed: int,
) -> pd.DataFrame:
    """Every baseline at every sample size of the grid from 2 to ``max_sample_size``.

    Training and test samples are those of the spectral method. Methods are kernel ridge regression
    with the ``polynomial`` kernel of degree 2q, the ``arc_cosine`` or the ``rbf`` kernel, ridge
    regression on ``random_features``, and the ``network``, which starts at 20 samples.

    ``ridge`` is the chosen penalty, relative to k(x, x) at squared length d; ``selection_error``
    the leave-one-out error of that ridge, or the validation error of the network's chosen epoch,
    over Var(y) of the training labels; ``mse`` is test MSE / Var(y).
    """
    if family.features != "hermite":
        raise ConfigError(
            f"{study_name}: baselines need inputs x, but features {family.features!r} have none; "
            "leave this study out of baselines.studies"
        )
    grid = family.sample_exponents.sample_sizes(dimension)
    sizes = [n for n in grid if 2 <= n <= baselines.max_sample_size]
    if not sizes:
        raise ConfigError(
            f"baselines.max_sample_size {baselines.max_sample_size} is below every sample size of "
            f"{study_name} at d = {dimension}, the smallest is {grid[0]}"
        )
    tables = []
    for replicate in replicates:
        teacher = draw_teacher(family, dimension=dimension, replicate=replicate, seed=seed)
        task = _Task.draw(teacher, sizes, evaluation.test_size, replicate=replicate, seed=seed)
        jobs = _jobs(task, baselines, teacher.degree)
        rows = [row for job in track(jobs, total=len(jobs), label="baselines") for row in job()]
        tables.append(
            tabulate(
                rows, study_name=study_name, family=family, dimension=dimension, replicate=replicate
            )
        )
    table = pd.concat(tables, ignore_index=True)
    table["ridge"] = table["ridge"].astype("float64")
    return table


@dataclass(frozen=True)
class _Task:
    """The samples of one teacher, drawn once for all methods."""

    sizes: list[int]
    inputs: Matrix
    labels: Matrix
    test_inputs: Matrix
    test_labels: Matrix
    key: tuple[int, int, int]
    seed: int

    @classmethod
    def draw(
        cls, teacher: Teacher, sizes: list[int], test_size: int, *, replicate: int, seed: int
    ) -> "_Task":
        key = (teacher.degree, teacher.dimension, replicate)
        train = Samples(teacher, "train", *key, seed=seed)
        test = Samples(teacher, "test", *key, seed=seed, noiseless=True)
        return cls(
            sizes=sizes,
            inputs=train.inputs(sizes[-1]),
            labels=train.labels(sizes[-1]),
            test_inputs=test.inputs(test_size),
            test_labels=test.labels(test_size),
            key=key,
            seed=seed,
        )

    def row(
        self, n: int, method: str, ridge: float | None, error: float, predicted: Matrix
    ) -> dict[str, object]:
        return {
            "sample_size": n,
            "method": method,
            "ridge": ridge,
            "selection_error": error / float(self.labels[:n].var()),
            "mse": normalised_mse(predicted, self.test_labels),
        }


def _jobs(task: _Task, baselines: Baselines, degree: int) -> list[Callable[[], Rows]]:
    """Calls that each return rows: one per kernel, one for the features, one per network."""
    return [
        *(
            partial(_kernel_rows, task, baselines, method, kernel)
            for method, kernel in baseline_kernels(degree).items()
        ),
        partial(_feature_rows, task, baselines),
        *(
            partial(_network_rows, task, baselines, n)
            for n in task.sizes
            if n >= _MIN_NETWORK_SAMPLES
        ),
    ]


def _kernel_rows(task: _Task, baselines: Baselines, method: str, kernel: Kernel) -> Rows:
    fits = fit_kernel_ridge(
        task.inputs,
        task.labels,
        kernel=kernel,
        ridges=baselines.ridges,
        sample_sizes=task.sizes,
        name=f"kernel ridge regression ({method})",
    )
    predicted = fits.predict(task.test_inputs)
    return [
        task.row(n, method, fits.ridges[k], fits.loo_errors[k], predicted[:, k])
        for k, n in enumerate(task.sizes)
    ]


def _feature_rows(task: _Task, baselines: Baselines) -> Rows:
    features = RandomFeatures.draw(
        task.inputs.shape[1], baselines.random_features, *task.key, seed=task.seed
    )
    fits = fit_random_features(
        features(task.inputs), task.labels, task.sizes, ridges=baselines.ridges
    )
    coefficients = np.stack([fit.coefficients for fit in fits], axis=1)
    blocks = range(0, len(task.test_inputs), _TEST_ROWS)
    predicted = np.concatenate(
        [features(task.test_inputs[low : low + _TEST_ROWS]) @ coefficients for low in blocks]
    )
    return [
        task.row(n, "random_features", fit.ridge, fit.loo_error, predicted[:, k] + fit.label_mean)
        for k, (n, fit) in enumerate(zip(task.sizes, fits, strict=True))
    ]


def _network_rows(task: _Task, baselines: Baselines, n: int) -> Rows:
    fit = fit_network(
        task.inputs[:n],
        task.labels[:n],
        baselines.network,
        seed=torch_seed(task.seed, "network", *task.key, n),
    )
    return [task.row(n, "network", None, fit.validation_error, fit.predict(task.test_inputs))]
