"""The sharp theory of the moment matrix: its bulk, its outliers, their overlaps, the test error.

In the Gaussian-equivalent model (F replaced by N(0, I_D)) everything is explicit at fixed
c = D/n. With m(z) = (1/D) tr (C - z)^-1 and averages over the label y and the latents h_i,

    z = -1/m + E[y / (1 + c y m)]                                           (bulk)
    z_i = E[y h_i^2 / (1 + c y m_i)], where m_i solves z(m_i) = z_i          (outlier i)
    cos^2_i = 1 / (1 + c m' E[y^2 h_i^2 / (1 + c y m_i)^2]),
    1/m' = 1/m_i^2 - c E[y^2 / (1 + c y m_i)^2]                              (overlap i)

on the branch m < 0, m' > 0; for lambda_i < 0 the same with -y. The averages need no samples:
:mod:`.label_law` has the law of y, and of y weighed by h_i^2.

Labels with a tail have poles: a sample with 1 + c y m < 0 makes an eigenvalue of its own beyond
z(m), a spurious outlier. Labels within ``POLE_MARGIN`` of the pole and beyond it are left out of
the averages, and the spurious outliers are counted (:attr:`Prediction.spurious`). The margin is a
regularisation: where many labels lie near the pole (strong directions, n / D below about 30 at
gamma = 0.4) a prediction moves with it, by up to some 0.03 between margins 0.02 and 0.2.

Source: this project; the paper gives orders of magnitude alone (:mod:`.scaling_laws`).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_laws.artifacts import check_finite
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.readout import ScalarReadout, normalised_mse, second_latent
from spectral_laws.recovery.teacher import respond
from spectral_laws.rng import generator

Vector = NDArray[np.float64]
SecondLayer = Literal["same_sample", "independent", "outliers"]
SECOND_LAYERS: tuple[SecondLayer, ...] = ("same_sample", "independent", "outliers")

POLE_MARGIN = 0.05
"""Samples with 1 + c y m below this are left out: nearer ones make outliers of their own."""
_POINTS = 64  # solved at once


@dataclass(frozen=True)
class _Side:
    """The right side of the spectrum for labels y, or the left side for -y; s = -m > 0."""

    labels: Vector
    probabilities: Vector
    ratio: float  # c = D / n

    def reach(self, s: Vector) -> tuple[Vector, NDArray[np.bool_]]:
        """1 + c y m and whether it is above the margin, for every s (rows) and bin."""
        distance = 1.0 - self.ratio * s[:, None] * self.labels
        return distance, distance > POLE_MARGIN

    def weighted(self, s: Vector, masses: Vector, *, power: int) -> Vector:
        """E[(y / (1 + c y m))^power] under ``masses`` (B, or one row per s), for every s."""
        distance, near = self.reach(s)
        terms = np.where(near, self.labels / np.where(near, distance, 1.0), 0.0) ** power
        return np.asarray((terms * masses).sum(axis=1))

    def position(self, s: Vector) -> Vector:
        """z(m)."""
        return np.asarray(1.0 / s + self.weighted(s, self.probabilities, power=1))

    def slope(self, s: Vector) -> Vector:
        """dz/dm, which is positive outside the bulk."""
        return np.asarray(1.0 / s**2 - self.ratio * self.weighted(s, self.probabilities, power=2))

    def edge(self) -> float:
        """The first zero of dz/dm from s = 0, at the edge of the bulk.

        At large c every sample makes an eigenvalue of its own and there may be none: then where
        s^2 dz/dm is smallest, which is where the last zero was as c grew.
        """
        unit = 1.0 / (self.ratio * math.sqrt(float(self.probabilities @ self.labels**2)))
        low, nearest, best = 0.0, math.inf, 0.0
        for block in np.array_split(unit * np.geomspace(1e-6, 1e6, 480), 12):
            slope = self.slope(block)
            inside = np.flatnonzero(slope <= 0)
            if inside.size:
                high = float(block[inside[0]])
                low = float(block[inside[0] - 1]) if inside[0] else low
                break
            k = int(np.argmin(block**2 * slope))
            if block[k] ** 2 * slope[k] < nearest:
                nearest, best = float(block[k] ** 2 * slope[k]), float(block[k])
            low = float(block[-1])
        else:
            return best
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.slope(np.array([middle]))[0] > 0 else (low, middle)
        return low


@dataclass(frozen=True)
class Prediction:
    """What the sharp theory says at one c = D/n.

    Attributes:
        edges: left and right edge of the bulk.
        positions: z_i of every direction, NaN where it has no outlier among the largest in
            magnitude: none, or one that the bulk on the other side outranks.
        cos2: cos^2_i of its outlier's eigenvector with direction i, 0 where it has none.
        spurious: per direction, share of samples that make an outlier beyond z_i (times n: about
            their expected number), on either side.
    """

    edges: tuple[float, float]
    positions: Vector
    cos2: Vector
    spurious: Vector

    def visible(self, sample_size: int) -> "Prediction":
        """The same with the outliers that are among the d1 largest in magnitude alone.

        Spurious outliers of ``sample_size`` labels take places in that list.
        """
        magnitudes = np.nan_to_num(np.abs(self.positions), nan=0.0)
        rank = np.argsort(np.argsort(-magnitudes, kind="stable"), kind="stable")
        seen = rank + sample_size * self.spurious < len(self.cos2)
        return replace(
            self,
            positions=np.where(seen, self.positions, np.nan),
            cos2=np.where(seen, self.cos2, 0.0),
        )


def predict(law: LabelLaw, aspect_ratio: float) -> Prediction:
    """Bulk edges, outliers and overlaps at c = D/n.

    Raises:
        ValueError: if the ratio is not positive.
    """
    right, left = _sides(law, aspect_ratio)
    ends = {1: right.edge(), -1: left.edge()}
    edges = (
        -float(left.position(np.array([ends[-1]]))[0]),
        float(right.position(np.array([ends[1]]))[0]),
    )
    count = len(law.weights)
    positions, cos2, spurious = np.full(count, np.nan), np.zeros(count), np.zeros(count)
    for sign, side in ((1, right), (-1, left)):
        mine = np.flatnonzero(np.sign(law.weights[: len(law.weighed)]) == sign)
        found, s = _outliers(side, law.weighed[mine], ends[sign])
        which = mine[found]
        if which.size == 0:
            continue
        slope = side.slope(s)
        spread = side.weighted(s, law.weighed[which], power=2)
        positions[which] = sign * side.position(s)
        cos2[which] = 1.0 / (1.0 + aspect_ratio * spread / slope)
        spurious[which] = [
            float(law.probabilities[np.abs(law.labels) > 1.0 / (aspect_ratio * si)].sum())
            for si in s
        ]
    outranked = np.abs(positions) < max(map(abs, edges))  # False where NaN
    positions[outranked], cos2[outranked], spurious[outranked] = np.nan, 0.0, 0.0
    check_finite("cos^2 of the sharp theory", cos2)
    return Prediction(edges, positions, cos2, spurious)


def _outliers(side: _Side, weighed: Vector, end: float) -> tuple[NDArray[np.bool_], Vector]:
    """Which directions have an outlier, and s = -m there: the zero of z(m) - M_i(m) by bisection.

    z falls and M_i grows with s on (0, end), so there is at most one zero.
    """

    def excess(s: Vector, masses: Vector) -> Vector:
        return side.position(s) - side.weighted(s, masses, power=1)

    if len(weighed) == 0:
        return np.zeros(0, dtype=np.bool_), np.zeros(0)
    found = excess(np.full(len(weighed), end), weighed) < 0
    masses = weighed[found]
    low, high = np.zeros(len(masses)), np.full(len(masses), end)
    for _ in range(30):
        middle = 0.5 * (low + high)
        above = excess(middle, masses) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return found, 0.5 * (low + high)


def bulk_edges(law: LabelLaw, aspect_ratio: float) -> tuple[float, float]:
    """Left and right edge of the bulk of C at c = D/n.

    They are sharp for bounded labels. Labels with a tail add spurious outliers beyond them; for c
    above about 1 the largest labels are the bulk, and the edges of labels with a tail are rough, up
    to a few times too narrow.

    Raises:
        ValueError: if the ratio is not positive.
    """
    right, left = _sides(law, aspect_ratio)
    ends = [float(side.position(np.array([side.edge()]))[0]) for side in (left, right)]
    return -ends[0], ends[1]


def _sides(law: LabelLaw, aspect_ratio: float) -> tuple[_Side, _Side]:
    if not 0 < aspect_ratio < math.inf:
        raise ValueError(f"aspect_ratio must be positive and finite, got {aspect_ratio}")
    right = _Side(law.labels, law.probabilities, aspect_ratio)
    return right, _Side(-law.labels, law.probabilities, aspect_ratio)


def bulk_density(law: LabelLaw, aspect_ratio: float, points: ArrayLike) -> Vector:
    """Spectral density of the bulk at real points x, Im m(x + i0) / pi.

    m solves m = -1 / (z - E[y / (1 + c y m)]), see :func:`_stieltjes`; outside the bulk the
    density is 0. For c > 1 the point mass 1 - 1/c at 0 is left out (within 1e-4 of the bulk's
    width).

    Raises:
        ValueError: if the ratio is not positive.
    """
    if not 0 < aspect_ratio < math.inf:
        raise ValueError(f"aspect_ratio must be positive and finite, got {aspect_ratio}")
    x = np.asarray(points, dtype=np.float64)
    density = np.zeros(x.size)
    low, high = bulk_edges(law, aspect_ratio)
    within = (x.ravel() > low) & (x.ravel() < high)
    if aspect_ratio > 1:
        within &= np.abs(x.ravel()) > 1e-4 * (high - low)
    inside = np.flatnonzero(within)
    for which in np.array_split(inside, -(-len(inside) // _POINTS) or 1):
        transform = _stieltjes(law, aspect_ratio, x.ravel()[which], high - low)
        density[which] = transform.imag / math.pi
    check_finite("density of the bulk", density)
    return density.reshape(x.shape)


def _stieltjes(law: LabelLaw, ratio: float, x: Vector, width: float) -> NDArray[np.complex128]:
    """m(x + i0), by Newton's method at heights above the real axis that fall to 1e-6 of ``width``.

    For Im z > 0 there is one solution with Im m > 0. A Newton step that leaves the half-plane or
    does not lower the residual is replaced by one of the fixed point, which stays inside it.
    """

    def residual(z: NDArray[np.complex128], m: NDArray[np.complex128]) -> tuple[Any, Any, Any]:
        kernel = law.labels / (1.0 + ratio * m[:, None] * law.labels)
        mean = kernel @ law.probabilities
        return -1.0 / m + mean - z, 1.0 / m**2 - ratio * (kernel**2 @ law.probabilities), mean

    m = np.full(x.size, 1j / math.sqrt(ratio * law.variance))
    for height in width * np.geomspace(1.0, 1e-6, 19):
        z = x + 1j * height
        error, slope, mean = residual(z, m)
        for _ in range(100):
            newton = m - error / slope
            fixed = 0.5 * (m - 1.0 / (z - mean))
            tried = np.where(newton.imag > 0, newton, fixed)
            new_error, new_slope, new_mean = residual(z, tried)
            worse = np.abs(new_error) > np.abs(error)
            if worse.any():
                tried = np.where(worse, fixed, tried)
                new_error, new_slope, new_mean = residual(z, tried)
            m, error, slope, mean = tried, new_error, new_slope, new_mean
            if np.all(np.abs(error) < 1e-9 * width):
                break
    return m


def second_layer_coefficients(
    law: LabelLaw, prediction: Prediction, second_layer: SecondLayer
) -> Vector:
    """Diagonal of A2 in the basis of the estimated directions, d1 numbers.

    ``independent``: E[y (h_i^2 - 1)] cos^2_i; ``outliers``: z_i of the outliers, else 0;
    ``same_sample``: z_i of the outliers, else the edge of larger magnitude.
    """
    if second_layer == "independent":
        moments = law.weighed @ law.labels
        return np.append(moments, np.zeros(len(law.weights) - len(moments))) * prediction.cos2
    edge = max(prediction.edges, key=abs) if second_layer == "same_sample" else 0.0
    return np.where(np.isnan(prediction.positions), edge, prediction.positions)


def predict_mse(
    law: LabelLaw,
    prediction: Prediction,
    second_layer: SecondLayer,
    *,
    readout_degree: int = 5,
    samples: int = 1 << 15,
    seed: int = 0,
) -> float:
    """Test MSE / Var(y) of the noise-free label, from the predicted overlaps.

    Identity readout: with the coefficients a of :func:`second_layer_coefficients`, 1 - (sum_i
    lambda_i cos^2_i a_i)^2 / sum_i a_i^2, the best linear readout of hhat2 (exact for
    ``independent``; for ``same_sample`` a polynomial gains up to some 0.02). Other readouts:
    hhat1_i = cos_i h_i + sin_i g_i and y are drawn, ``samples`` times, the polynomial readout is
    fitted, and tested on as many again.
    """
    a = second_layer_coefficients(law, prediction, second_layer)
    if not a.any():
        return 1.0
    if law.readout == "identity":
        return float(1.0 - (law.weights * prediction.cos2 @ a) ** 2 / (a @ a))
    random = generator(seed, "predicted mse")
    h, other = random.standard_normal((2, 2 * samples, len(a)))
    learned = np.sqrt(prediction.cos2) * h + np.sqrt(1.0 - prediction.cos2) * other
    labels = respond(h, law.weights, law.readout)
    latent = second_latent(np.diag(a), learned)
    fit = ScalarReadout.fit(latent[:samples], labels[:samples], degree=readout_degree)
    return normalised_mse(fit.predict(latent[samples:]), labels[samples:])
