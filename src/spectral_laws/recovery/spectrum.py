"""The spectrum of C: all eigenvalues, or their density by stochastic Lanczos quadrature."""

import math

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.device import find_device
from spectral_laws.errors import ConfigError
from spectral_laws.progress import track
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.study import draw_teacher, tabulate
from spectral_laws.recovery.theory import bulk_density, bulk_edges
from spectral_laws.rng import generator
from spectral_laws.settings.recovery import SpectrumPoint, TeacherFamily

DENSE_LIMIT = 3000


def moment_spectrum(
    moment: MomentMatrix,
    *,
    dense_limit: int = DENSE_LIMIT,
    probes: int = 8,
    steps: int = 120,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues and their masses, increasing, masses of sum 1.

    Up to ``dense_limit`` features: every eigenvalue of C, mass 1/D each. Above: the Gauss
    quadrature nodes and weights of the spectral density, averaged over random probe vectors (a node
    outside the bulk sits on an outlier; its weight estimates 1/D). Each probe, drawn with ``seed``,
    takes at most D ``steps`` of Lanczos.

    Raises:
        NumericalError: if a product with C is NaN or infinite.
    """
    if moment.size <= dense_limit:
        matrix = moment.dense()
        check_finite("moment matrix", matrix)
        values = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
        return values, np.full(len(values), 1.0 / len(values))
    start = generator(seed, "spectrum probes").standard_normal((probes, moment.size))
    return lanczos_quadrature(moment, start, steps=min(steps, moment.size))


def lanczos_quadrature(
    moment: MomentMatrix, start: NDArray[np.float64], *, steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights of the mean over rows v of ``start`` of v^T f(C) v / v^T v.

    One Lanczos recurrence per row, with full reorthogonalisation in float64; all rows share each
    pass over the samples.
    """
    rows = torch.from_numpy(start / np.linalg.norm(start, axis=1, keepdims=True))
    rows = rows.to(moment.samples.device)
    count = len(rows)
    bases = torch.zeros(count, steps, rows.shape[1], dtype=torch.float64, device=rows.device)
    diagonal, off_diagonal = np.zeros((count, steps)), np.zeros((count, steps))
    for step in track(range(steps), total=steps, label="Lanczos"):
        bases[:, step] = rows
        images = moment.apply(rows)
        check_finite("moment matrix times probes", images.cpu().numpy())
        diagonal[:, step] = (images * rows).sum(1).cpu().numpy()
        known = bases[:, : step + 1]
        for _ in range(2):
            inner = torch.einsum("psf,pf->ps", known, images)
            images = images - torch.einsum("ps,psf->pf", inner, known)
        norms = torch.linalg.vector_norm(images, dim=1)
        off_diagonal[:, step] = norms.cpu().numpy()
        # A zero norm means an invariant subspace: the zero off-diagonal decouples what follows.
        rows = images / norms.clamp_min(1e-300)[:, None]
    nodes, weights = [], []
    for a, b in zip(diagonal, off_diagonal, strict=True):
        values, vectors = np.linalg.eigh(np.diag(a) + np.diag(b[:-1], 1) + np.diag(b[:-1], -1))
        nodes.append(values)
        weights.append(vectors[0] ** 2 / count)
    values, masses = np.concatenate(nodes), np.concatenate(weights)
    order = np.argsort(values, kind="stable")
    if not math.isclose(float(masses.sum()), 1.0, abs_tol=1e-9):
        raise AssertionError("quadrature weights do not add up to 1")
    return values[order], masses[order]


def tabulate_spectrum(
    family: TeacherFamily,
    point: SpectrumPoint,
    *,
    seed: int,
    memory_mb: float = 1500.0,
    device: str = "cpu",
) -> pd.DataFrame:
    """The whole spectrum of one C: replicate 0 of ``point.dimension``, n = d^sample_exponent.

    Masses are 1/D each, or quadrature weights (see :func:`moment_spectrum`); density and edges are
    those of the Gaussian-equivalent bulk.
    """
    teacher = draw_teacher(family, dimension=point.dimension, replicate=0, seed=seed)
    n = point.sample_size
    if n < 2:
        raise ConfigError(f"spectrum.sample_exponent {point.sample_exponent} gives n = {n} < 2")
    samples = Samples(
        teacher,
        *("train", teacher.degree, teacher.dimension, 0),
        seed=seed,
        device=find_device(device),
        memory_mb=memory_mb,
    )
    law = LabelLaw.of(teacher.weights, readout=teacher.readout, noise=teacher.noise)
    ratio = teacher.feature_dimension / n
    low, high = bulk_edges(law, ratio)
    values, masses = moment_spectrum(MomentMatrix(samples, n), seed=seed)
    rows: list[dict[str, object]] = [
        {
            "sample_size": n,
            "eigenvalue": value,
            "mass": mass,
            "density": density,
            "edge_low": low,
            "edge_high": high,
        }
        for value, mass, density in zip(
            values.tolist(), masses.tolist(), bulk_density(law, ratio, values).tolist(), strict=True
        )
    ]
    return tabulate(
        rows, study_name=point.study, family=family, dimension=point.dimension, replicate=0
    )
