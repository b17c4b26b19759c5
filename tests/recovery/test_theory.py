"""The sharp theory against exact moments, closed forms and simulated matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2, norm

from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.readout import ScalarReadout, normalised_mse
from spectral_laws.recovery.teacher import power_law_weights, respond
from spectral_laws.recovery.theory import (
    SECOND_LAYERS,
    Prediction,
    bulk_density,
    bulk_edges,
    predict,
    predict_mse,
    second_layer_coefficients,
)


def signed_weights(d1, gamma=0.4, seed=0):
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], d1)
    return power_law_weights(d1, gamma) * signs


def two_values(high=1.0, share=0.5):
    """Centred labels of two values that do not depend on the one latent."""
    labels = np.array([high, -high * share / (1 - share)])
    masses = np.array([share, 1 - share])
    return LabelLaw(np.ones(1), "identity", 0.0, labels, masses, masses[None])


# The law of the labels


@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("d1", [1, 3, 20, 200])
def test_moments_of_the_label_law(d1, gamma):
    weights = signed_weights(d1, gamma)
    law = LabelLaw.of(weights)
    assert law.probabilities.min() >= 0
    assert law.weighed.min() >= 0
    assert law.probabilities.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(law.weighed.sum(axis=1), 1.0)

    def moments(masses, power):
        return masses @ law.labels**power

    # Cumulants of sum_i lambda_i (h_i^2 - 1) / sqrt 2: 1, sqrt8 sum lambda^3, 12 sum lambda^4.
    assert moments(law.probabilities, 1) == pytest.approx(0.0, abs=1e-10)
    assert law.variance == pytest.approx(1.0, abs=1e-3)
    third = math.sqrt(8) * np.sum(weights**3)
    assert moments(law.probabilities, 3) == pytest.approx(third, abs=5e-3)
    assert moments(law.probabilities, 4) == pytest.approx(3 + 12 * np.sum(weights**4), rel=2e-3)
    # E[h_i^2 y] = sqrt2 lambda_i and E[h_i^2 y^2] = 1 + 4 lambda_i^2.
    np.testing.assert_allclose(moments(law.weighed, 1), math.sqrt(2) * weights, atol=1e-3)
    np.testing.assert_allclose(moments(law.weighed, 2), 1 + 4 * weights**2, atol=5e-3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("readout", ["identity", "tanh", "relu"])
def test_one_direction_is_a_chi_squared_variable(sign, readout):
    law = LabelLaw.of([sign], readout=readout)
    g = {"identity": lambda v: v, "tanh": math.tanh, "relu": lambda v: max(v, 0.0)}[readout]

    def exact(f, power=0):
        def integrand(h):
            return norm.pdf(h) * h**power * f(g(sign * (h * h - 1) / math.sqrt(2)))

        return 2 * quad(integrand, 0, 12, points=[1.0], limit=200)[0]

    mean = exact(lambda y: y)
    for f in (abs, math.tanh, lambda y: math.exp(-abs(y)), lambda y: y * y):
        centred = np.vectorize(f)(law.labels)
        assert law.probabilities @ centred == pytest.approx(
            exact(lambda y, f=f: f(y - mean)), abs=1e-3
        )
        assert law.weighed[0] @ centred == pytest.approx(
            exact(lambda y, f=f: f(y - mean), power=2), abs=2e-3
        )


def test_one_direction_has_the_distribution_function_of_chi_squared():
    law = LabelLaw.of([1.0])
    middles = 0.5 * (law.labels[1:] + law.labels[:-1])
    exact = chi2.cdf(math.sqrt(2) * middles + 1, 1)
    away = middles > -1 / math.sqrt(2) + 0.1  # from the pole of the density
    gaps = np.abs(np.cumsum(law.probabilities)[:-1] - exact)
    assert gaps[away].max() < 1e-3
    tilted = np.abs(
        np.cumsum(law.weighed[0])[:-1] - chi2.cdf(math.sqrt(2) * middles + 1, 3)
    )  # h^2 chi^2_1 is chi^2_3
    assert tilted[away].max() < 1e-3


@pytest.mark.parametrize("readout", ["identity", "tanh", "relu"])
@pytest.mark.parametrize(("d1", "noise"), [(3, 0.0), (3, 0.7), (12, 0.3)])
def test_law_equals_monte_carlo(d1, noise, readout):
    """Within 5 standard errors and the 1e-3 that the docstring's accuracy leaves room for."""
    random = np.random.default_rng(d1)
    weights = signed_weights(d1, seed=2)
    law = LabelLaw.of(weights, readout=readout, noise=noise)
    size = 200_000
    h = random.standard_normal((size, d1))
    y = respond(h, weights, readout) + noise * random.standard_normal(size)
    y -= y.mean()

    def agree(samples, expected):
        error = samples.std() / math.sqrt(size)
        assert samples.mean() == pytest.approx(expected, abs=5 * error + 1e-3)

    for f in (np.tanh, np.cos, np.square, lambda v: v / (4 + v * v)):
        agree(f(y), law.probabilities @ f(law.labels))
        for i in (0, 1, d1 - 1):
            agree(h[:, i] ** 2 * f(y), law.weighed[i] @ f(law.labels))
    if not noise and readout != "relu":  # noise is a quadrature rule; relu makes an atom
        levels = np.quantile(y, [0.02, 0.2, 0.5, 0.8, 0.98])
        found = np.interp(levels, law.labels, np.cumsum(law.probabilities))
        np.testing.assert_allclose(found, [0.02, 0.2, 0.5, 0.8, 0.98], atol=0.008)


def test_noise_adds_its_variance_and_nothing_else():
    weights = signed_weights(5)
    for readout in ("identity", "tanh", "relu"):
        clean = LabelLaw.of(weights, readout=readout)
        noisy = LabelLaw.of(weights, readout=readout, noise=0.6)
        assert noisy.variance == pytest.approx(clean.variance + 0.36, rel=1e-9)
        np.testing.assert_allclose(
            noisy.weighed @ noisy.labels, clean.weighed @ clean.labels, atol=1e-9
        )
        fourth = clean.probabilities @ clean.labels**4 + 6 * 0.36 * clean.variance + 3 * 0.36**2
        assert noisy.probabilities @ noisy.labels**4 == pytest.approx(fourth, rel=1e-9)


def test_count_leaves_out_the_weak_directions_alone():
    weights = signed_weights(30)
    whole, part = LabelLaw.of(weights), LabelLaw.of(weights, count=12)
    np.testing.assert_array_equal(part.labels, whole.labels)
    np.testing.assert_array_equal(part.weighed, whole.weighed[:12])
    ours, all_of_them = predict(part, 0.01), predict(whole, 0.01)
    assert all_of_them.cos2[:12].min() > 0
    np.testing.assert_array_equal(ours.cos2, np.where(np.arange(30) < 12, all_of_them.cos2, 0))


@pytest.mark.parametrize("weights", [[], [0.5], [[1.0]], [1.0, 1.0]])
def test_weights_must_be_normalised(weights):
    with pytest.raises(ValueError, match="weights must"):
        LabelLaw.of(weights)


# The bulk


@pytest.mark.parametrize("c", [0.01, 0.3, 0.8])
def test_equal_labels_make_marchenko_pastur(c):
    law = LabelLaw(np.ones(1), "identity", 0.0, np.ones(1), np.ones(1), np.ones((1, 1)))
    low, high = (1 - math.sqrt(c)) ** 2, (1 + math.sqrt(c)) ** 2
    assert bulk_edges(law, c) == pytest.approx((low, high), rel=1e-9)
    x = np.linspace(low, high, 40)[1:-1]
    exact = np.sqrt((high - x) * (x - low)) / (2 * np.pi * c * x)
    np.testing.assert_allclose(bulk_density(law, c, x), exact, rtol=1e-3)
    outside = bulk_density(law, c, [[low - 0.01, high + 0.01], [-1.0, 9.0]])
    np.testing.assert_array_equal(outside, np.zeros((2, 2)))


def cubic_density(law, c, x):
    """Im m / pi for two label values: the bulk's equation times its denominators, a cubic in m."""
    (a, b), (p, q) = law.labels, law.probabilities
    density = []
    for z in x:
        # (z m + 1)(1 + c a m)(1 + c b m) - p a m (1 + c b m) - q b m (1 + c a m) = 0
        product = np.polymul([c * a, 1], [c * b, 1])
        left = np.polymul([z, 1], product)
        right = np.polymul([p * a, 0], [c * b, 1]) + np.polymul([q * b, 0], [c * a, 1])
        roots = np.roots(np.polysub(left, right))
        density.append(roots.imag.max() / np.pi)
    return np.array(density)


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("c", [0.02, 0.3, 1.0, 4.0])
def test_two_label_values_make_the_density_of_a_cubic(c, share):
    law = two_values(share=share)
    low, high = bulk_edges(law, c)
    for edge, step in ((low, -1), (high, 1)):
        gap = 1e-4 * (high - low) * step
        outside, inside = cubic_density(law, c, [edge + gap, edge - gap])
        assert outside < 1e-6 < 1e-4 < inside
    x = low + (high - low) * np.array([0.03, 0.1, 0.2, 0.35, 0.6, 0.8, 0.9, 0.97])
    np.testing.assert_allclose(bulk_density(law, c, x), cubic_density(law, c, x), atol=2e-4)


def test_few_samples_make_a_bulk_at_the_labels():
    """n << D: rows of F are almost orthogonal, of squared norm D, and C has eigenvalues c y.

    At c = 1000 the edge of two label values is within the margin of the pole: 5 % of it.
    """
    law = two_values()
    low, high = bulk_edges(law, 1000.0)
    fine = np.linspace(900, 1200, 3001)
    exact = fine[cubic_density(law, 1000.0, fine) > 1e-8].max()
    assert high == pytest.approx(exact, rel=0.06)
    assert low == pytest.approx(-exact, rel=0.06)


@pytest.mark.parametrize("readout", ["identity", "tanh", "relu"])
@pytest.mark.parametrize("d1", [1, 3, 20])
def test_edges_stay_at_the_labels_however_few_the_samples(d1, readout):
    law = LabelLaw.of(signed_weights(d1), readout=readout)
    for c in (1.0, 3.0, 10.0, 100.0):
        low, high = bulk_edges(law, c)
        widest = (1 + math.sqrt(1 / c)) ** 2 * c  # of Marchenko-Pastur, for labels of one value
        assert 1.1 * widest * law.labels.min() < low < 0 < high < 1.1 * widest * law.labels.max()
        assert predict(law, c).edges == (low, high)
    assert not predict(law, 100.0).cos2.any()


def test_small_aspect_ratio_is_the_semicircle():
    law = LabelLaw.of(signed_weights(10), readout="tanh")
    radius = 2 * math.sqrt(1e-5 * law.variance)
    assert bulk_edges(law, 1e-5) == pytest.approx((-radius, radius), rel=0.02)
    x = radius * np.array([-0.7, -0.2, 0.0, 0.4, 0.8])
    exact = 2 * np.sqrt(radius**2 - x**2) / (np.pi * radius**2)
    np.testing.assert_allclose(bulk_density(law, 1e-5, x), exact, rtol=0.02)


@pytest.mark.parametrize("c", [0.1, 0.5])
@pytest.mark.parametrize("readout", ["tanh", "identity"])
def test_density_integrates_to_one(readout, c):
    law = LabelLaw.of(signed_weights(8), readout=readout)
    low, high = bulk_edges(law, c)
    x = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * (np.arange(120) + 0.5) / 120)
    weights = np.pi / 120 * np.sqrt((x - low) * (high - x))
    mass = weights @ bulk_density(law, c, x)
    # Labels with a tail put mass beyond the edges: that of the samples with a pole there.
    assert mass == pytest.approx(1.0, abs=0.005 if readout == "tanh" else 0.03)
    assert mass < 1.005


@pytest.mark.parametrize("c", [0.1, 0.6])
def test_bulk_of_a_simulated_matrix(c):
    """D = 400, bounded labels of the law, stratified, that do not depend on the features."""
    D, random = 400, np.random.default_rng(5)
    n = round(D / c)
    law = LabelLaw.of([0.8, -0.6], readout="tanh")
    cumulated = np.cumsum(law.probabilities) - 0.5 * law.probabilities
    labels = np.interp((np.arange(n) + 0.5) / n, cumulated, law.labels)
    labels -= labels.mean()
    features = random.standard_normal((n, D), dtype=np.float32)
    weighted = (labels / n).astype(np.float32)[:, None] * features
    values = np.linalg.eigvalsh((features.T @ weighted).astype(np.float64))
    low, high = bulk_edges(law, D / n)
    # Fluctuations of the extreme eigenvalues are of order D^(-2/3) = 0.018 of the bulk's width.
    assert values[0] == pytest.approx(low, abs=0.04 * (high - low))
    assert values[-1] == pytest.approx(high, abs=0.04 * (high - low))
    # Fluctuations of a linear statistic are of order 1/D.
    x = np.linspace(low, high, 321)
    density = bulk_density(law, D / n, x)
    step = x[1] - x[0]
    distribution = (np.cumsum(density) - 0.5 * density) * step
    empirical = np.searchsorted(np.sort(values), x) / D
    assert np.abs(distribution - empirical).max() < 0.015
    for power in (2, 3, 4):
        expected = np.sum(density * x**power) * step
        scale = np.sum(density * np.abs(x) ** power) * step
        assert np.mean(values**power) == pytest.approx(expected, abs=0.04 * scale)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 50),
    c=st.floats(1e-3, 20),
    readout=st.sampled_from(["identity", "tanh"]),  # odd
)
def test_flipping_all_signs_mirrors_everything(seed, c, readout):
    weights = signed_weights(6, seed=seed)
    one = predict(LabelLaw.of(weights, readout=readout), c)
    other = predict(LabelLaw.of(-weights, readout=readout), c)
    assert other.edges == pytest.approx((-one.edges[1], -one.edges[0]), rel=1e-6)
    np.testing.assert_allclose(other.cos2, one.cos2, atol=1e-6)
    np.testing.assert_allclose(other.positions, -one.positions, rtol=1e-6)
    np.testing.assert_allclose(other.spurious, one.spurious, atol=1e-7)


def test_aspect_ratio_must_be_positive():
    law = two_values()
    for call in (bulk_edges, predict, lambda law, c: bulk_density(law, c, [0.0])):
        for c in (0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match="aspect_ratio must be positive"):
                call(law, c)


# Outliers and overlaps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signs", "readout", "noise", "n"),
    [
        ([1, -1, 1, -1, 1], "identity", 0.0, 8000),
        ([-1, -1, 1, 1, -1], "tanh", 0.0, 8000),
        ([1, 1, -1, 1, 1], "relu", 0.3, 20_000),
    ],
)
def test_outliers_of_simulated_matrices(signs, readout, noise, n):
    """D = 400: cos^2 within 0.02, positions within 0.02 of the largest, plus 3 standard errors.

    The rectified label's negative direction has an outlier, -0.21 against a left edge of -0.19,
    but hundreds of bulk eigenvalues up to the right edge of 0.26 are larger: it is not found.
    """
    D, runs = 400, 8
    weights = power_law_weights(5, 0.4) * signs
    random = np.random.default_rng(3)
    prediction = predict(LabelLaw.of(weights, readout=readout, noise=noise), D / n)
    found = np.isfinite(prediction.positions)
    assert np.all(found == (weights > 0) if readout == "relu" else found)
    assert np.all(np.sign(prediction.positions) == np.sign(weights), where=found)
    cos2, positions = np.zeros((runs, 5)), np.zeros((runs, 5))
    for run in range(runs):
        F = random.standard_normal((n, D), dtype=np.float32)
        y = respond(F[:, :5], weights, readout) + noise * random.standard_normal(n)
        w = ((y - y.mean()) / n).astype(np.float32)
        values, vectors = np.linalg.eigh((F.T @ (w[:, None] * F)).astype(np.float64))
        top = np.argsort(-np.abs(values))[:5]
        cos2[run] = (vectors[:5, top] ** 2).sum(axis=1)
        positions[run] = values[top][np.abs(vectors[:5, top]).argmax(axis=1)]
    error = 3 * cos2.std(axis=0) / math.sqrt(runs)
    assert np.all(np.abs(cos2.mean(axis=0) - prediction.cos2) < 0.02 + error)
    error = 3 * positions.std(axis=0) / math.sqrt(runs)
    slack = 0.02 * np.abs(prediction.positions[found]).max()
    gaps = np.abs(positions.mean(axis=0) - prediction.positions)
    assert np.all(gaps[found] < (slack + error)[found])


def test_many_weak_directions_are_spikes_of_a_wigner_matrix():
    """C is then sqrt2 lambda u u^T + sqrt(c) Wigner: cos^2 = 1 - c / (2 lambda^2)."""
    gaps = []
    for d1 in (25, 400, 6400):
        weights = np.where(np.arange(d1) % 2, -1.0, 1.0) / math.sqrt(d1)
        law = LabelLaw.of(weights, count=2)
        ratios = np.array([1.0, 2.0, 8.0])  # n lambda^2 / D
        found = np.array([predict(law, 1 / (d1 * ratio)).cos2[:2] for ratio in ratios])
        gaps.append(np.abs(found - (1 - 1 / (2 * ratios))[:, None]).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.02
    # Half recovery at D / lambda^2, outliers from D / (2 lambda^2) on.
    assert not predict(law, 1 / (0.45 * d1)).cos2.any()
    below, above = predict(law, 1 / (0.48 * d1)), predict(law, 1 / (0.55 * d1))
    assert np.all(np.isnan(below.positions))
    assert np.all(np.isfinite(above.positions[:2]))


def test_more_samples_never_lower_an_overlap():
    law = LabelLaw.of(signed_weights(10))
    curves = np.array([predict(law, c).cos2 for c in np.geomspace(3.0, 1e-3, 25)])
    assert np.diff(curves, axis=0).min() > -1e-3
    assert curves[-1].min() > 0.9
    assert curves[0].max() == 0.0
    # The tail sum of lambda^2 (1 - cos^4) goes from 1 to 0 with them.
    outliers = np.array([np.isfinite(predict(law, c).positions) for c in (0.3, 0.05, 0.01)])
    assert np.all(outliers[:-1] <= outliers[1:])


def test_spurious_share_is_the_labels_beyond_the_pole():
    """From the share the pole, from the pole z, by draws of the one chi-squared variable."""
    c = 0.25
    prediction = predict(LabelLaw.of([1.0]), c)
    share = prediction.spurious[0]
    assert 1e-6 < share < 0.01
    pole = (chi2.isf(share, 1) - 1) / math.sqrt(2)  # 1 / (c s), s = -m
    y = (np.random.default_rng(0).standard_normal(2_000_000) ** 2 - 1) / math.sqrt(2)
    distance = 1 - y / pole
    z = c * pole + np.mean(np.where(distance > 0.05, y / np.maximum(distance, 0.05), 0.0))
    assert z == pytest.approx(prediction.positions[0], rel=0.02)


def test_visible_are_the_first_d1_in_magnitude():
    positions = np.array([3.0, -2.0, np.nan, 1.0])
    cos2 = np.array([0.9, 0.8, 0.0, 0.4])
    spurious = np.array([1e-4, 1e-3, 0.0, 2e-3])
    prediction = Prediction((-0.5, 0.5), positions, cos2, spurious)
    # Places taken: 0 + 1e-4 n, 1 + 1e-3 n, 2 + 2e-3 n, of four.
    np.testing.assert_array_equal(prediction.visible(500).cos2, cos2)
    np.testing.assert_array_equal(prediction.visible(1500).cos2, [0.9, 0.8, 0.0, 0.0])
    np.testing.assert_array_equal(prediction.visible(3500).cos2, [0.9, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(prediction.visible(50_000).cos2, np.zeros(4))


# The test error


@pytest.mark.parametrize("second_layer", SECOND_LAYERS)
def test_predicted_error_of_explicit_quadratic_forms(second_layer):
    weights = signed_weights(6, seed=4)
    law = LabelLaw.of(weights)
    prediction = predict(law, 0.2)
    assert 0 < np.count_nonzero(prediction.cos2) < 6
    random, size = np.random.default_rng(1), 400_000
    h, g = random.standard_normal((2, size, 6))
    learned = np.sqrt(prediction.cos2) * h + np.sqrt(1 - prediction.cos2) * g
    edge = max(prediction.edges, key=abs)
    found = np.isfinite(prediction.positions)
    a = {
        "same_sample": np.where(found, prediction.positions, edge),
        "outliers": np.where(found, prediction.positions, 0.0),
        # An independent sample measures E[y (hhat_i^2 - 1)].
        "independent": np.mean(respond(h, weights, "identity")[:, None] * (learned**2 - 1), 0),
    }[second_layer]
    ours = second_layer_coefficients(law, prediction, second_layer)
    np.testing.assert_allclose(ours, a, atol=0.03 if second_layer == "independent" else 1e-12)
    latent = (learned**2 - 1) @ a
    y = respond(h, weights, "identity")
    expected = 1 - np.corrcoef(latent, y)[0, 1] ** 2
    assert predict_mse(law, prediction, second_layer) == pytest.approx(expected, abs=0.01)
    if second_layer == "independent":
        closed = np.sum(weights**2 * (1 - prediction.cos2**2))
        assert predict_mse(law, prediction, second_layer) == pytest.approx(closed, abs=1e-3)


@pytest.mark.parametrize("readout", ["tanh", "relu"])
def test_predicted_error_of_other_readouts(readout):
    weights = signed_weights(4, seed=1)
    law = LabelLaw.of(weights, readout=readout, noise=0.5)
    prediction = predict(law, 0.05)
    random, size = np.random.default_rng(7), 100_000
    h, g = random.standard_normal((2, 2 * size, 4))
    learned = np.sqrt(prediction.cos2) * h + np.sqrt(1 - prediction.cos2) * g
    y = respond(h, weights, readout)  # the error is that of the noise-free label
    latent = (learned**2 - 1) @ second_layer_coefficients(law, prediction, "independent")
    fit = ScalarReadout.fit(latent[:size], y[:size], degree=3)
    expected = normalised_mse(fit.predict(latent[size:]), y[size:])
    found = predict_mse(law, prediction, "independent", readout_degree=3, samples=100_000)
    assert found == pytest.approx(expected, abs=0.01)
    assert found != predict_mse(law, prediction, "independent", readout_degree=1)
    moments = np.mean(y[:, None] * (h**2 - 1), axis=0) * prediction.cos2
    ours = second_layer_coefficients(law, prediction, "independent")
    np.testing.assert_allclose(ours, moments, atol=0.02)


def test_error_without_outliers_is_that_of_the_mean_and_with_all_of_them_zero():
    law = LabelLaw.of(signed_weights(4))
    nothing, everything = predict(law, 50.0), predict(law, 1e-6)
    for name in ("independent", "outliers"):
        assert predict_mse(law, nothing, name) == 1.0
    assert predict_mse(law, nothing, "same_sample") == pytest.approx(1.0, abs=1e-12)
    for name in SECOND_LAYERS:
        assert predict_mse(law, everything, name) < 1e-3
