"""The law of the label, and of the label weighed by each squared latent, without samples.

y is a function of h2 = (1/sqrt 2) sum_j lambda_j (h_j^2 - 1), a weighted sum of chi-squared
variables with the characteristic function
prod_j (1 - i sqrt2 lambda_j t)^(-1/2) exp(-i lambda_j t / sqrt2). Weighing by h_i^2 turns one
chi^2_1 into a chi^2_3: E[h_i^2 f(h2)] = E[f(h2 + sqrt2 lambda_i E)] with E exponential, one more
factor (1 - i sqrt2 lambda_i t)^-1. Both are put on a grid by the fast Fourier transform.

Source: this project.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from spectral_laws.recovery.teacher import Readout, apply_readout, check_target

Vector = NDArray[np.float64]

_SPACING = 1 / 64
_TAIL_LOGARITHM = 24.0  # the grid ends where a tail of scale sqrt2 lambda has fallen by e^-24
_NEGLIGIBLE = 1e-14
_EXPLICIT = 8  # directions whose own law is put on the grid
_NOISE_NODES = 9


@dataclass(frozen=True)
class LabelLaw:
    """The law of the centred label y, and of y weighed by each h_i^2, in bins.

    Attributes:
        weights: lambda, d1 numbers.
        readout: g.
        noise: standard deviation of the label noise.
        labels: centred label of each bin, B numbers.
        probabilities: of each bin, B numbers of sum 1.
        weighed: E[h_i^2; bin] of the strongest directions, one row of sum 1 each.
    """

    weights: Vector
    readout: Readout
    noise: float
    labels: Vector
    probabilities: Vector
    weighed: Vector

    @classmethod
    def of(
        cls,
        weights: ArrayLike,
        *,
        readout: Readout = "identity",
        noise: float = 0.0,
        count: int | None = None,
    ) -> "LabelLaw":
        """The law for orthonormal rows and Gaussian features, to about 4e-4 (in the variance).

        ``weights`` are lambda by decreasing magnitude. Only the ``count`` strongest directions are
        weighed; the others must be too weak to be recovered at any c that is asked for.

        Raises:
            ValueError: if ``count`` is out of range, or as :func:`.teacher.check_target`.
        """
        lambdas = np.asarray(weights, dtype=np.float64)
        check_target(lambdas, readout, noise)
        kept = len(lambdas) if count is None else count
        if not 1 <= kept <= len(lambdas):
            raise ValueError(f"count must be in 1..d1 = {len(lambdas)}, got {count}")
        values, masses = _latent_law(lambdas, kept)
        labels = apply_readout(values, readout)
        if noise > 0:
            nodes, shares = hermegauss(_NOISE_NODES)
            shares = shares / shares.sum()
            labels = (labels[:, None] + noise * nodes).ravel()
            masses = (masses[:, :, None] * shares).reshape(len(masses), -1)
        labels = labels - labels @ masses[0]
        return cls(lambdas, readout, noise, labels, masses[0], masses[1:])

    @cached_property
    def variance(self) -> float:
        """Var(y)."""
        return float(self.probabilities @ self.labels**2)


def _latent_law(weights: Vector, count: int) -> tuple[Vector, Vector]:
    """Grid of h2 (B) and, per row, its probabilities and those weighed by h_i^2 (1 + count x B).

    A product of transforms: of the masses on the grid for the strongest directions, whose density
    has a pole, and of the characteristic function for the others.
    """
    scale = math.sqrt(2.0) * float(np.abs(weights).max())
    half = _TAIL_LOGARITHM * scale + 12.0
    size = 1 << math.ceil(math.log2(2 * half / _SPACING))
    strong = np.argsort(-np.abs(weights), kind="stable")[:_EXPLICIT]
    plain, squared = (
        {i: _transform(_chi_squared_masses(weights[i], dof, size)) for i in strong}
        for dof in (1, 3)
    )
    t = 2 * np.pi * np.fft.rfftfreq(size, _SPACING)
    weak = np.delete(weights, strong)
    rest = np.exp(-1j * t * weak.sum() / math.sqrt(2.0))
    for weight in weak:
        rest /= np.sqrt(1.0 - 1j * math.sqrt(2.0) * weight * t)
    phi = rest * np.prod(list(plain.values()), axis=0)
    rows = [phi]
    for i, weight in enumerate(weights[:count]):
        if i in plain:
            others = [plain[j] for j in strong if j != i]
            rows.append(rest * squared[i] * np.prod(others, axis=0))
        else:
            rows.append(phi / (1.0 - 1j * math.sqrt(2.0) * weight * t))
    masses = np.array([np.fft.fftshift(np.fft.irfft(np.conj(row), size)) for row in rows])
    kept = masses[0] > _NEGLIGIBLE
    masses = np.maximum(masses[:, kept], 0.0)
    return _nodes(size)[kept], masses / masses.sum(axis=1, keepdims=True)


def _nodes(size: int) -> Vector:
    return _SPACING * (np.arange(size, dtype=np.float64) - size // 2)


def _transform(masses: Vector) -> NDArray[np.complex128]:
    """E exp(i t X) on the grid of frequencies."""
    return np.asarray(np.conj(np.fft.rfft(np.fft.ifftshift(masses))))


def _chi_squared_masses(weight: float, dof: int, size: int) -> Vector:
    """Masses on the grid of weight (chi^2_dof - 1) / sqrt 2, which keep its mean.

    Each value is shared between its two neighbours: the mass of a node is the second difference
    of E[(X - v)_+] = dof S_{dof+2}(v) - v S_dof(v), S the survival function.
    """
    unit = abs(weight) / math.sqrt(2.0)
    ends = _SPACING * (np.arange(-1, size + 1) - size // 2) / unit + 1.0
    beyond = np.where(ends > 0, dof * chdtrc(dof + 2, ends) - ends * chdtrc(dof, ends), dof - ends)
    masses = np.diff(beyond, 2) * unit / _SPACING
    masses[ends[2:] <= 0] = 0.0
    return masses if weight > 0 else np.roll(masses[::-1], 1)
