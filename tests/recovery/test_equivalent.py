"""The Gaussian-equivalent model drawn step by step, against the n x D matrix drawn whole."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp

from spectral_laws.errors import NumericalError
from spectral_laws.recovery.equivalent import simulate_equivalent
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.teacher import power_law_weights, respond
from spectral_laws.recovery.theory import predict

WEIGHTS = power_law_weights(4, 0.4) * [1, -1, 1, 1]


def draw_whole(weights, D, n, readout, noise, random):
    """Eigenvalues, cos^2 per direction and rank, localisation; from F itself, in float64."""
    width = len(weights)
    F = random.standard_normal((n, D))
    y = respond(F[:, :width], weights, readout) + noise * random.standard_normal(n)
    w = (y - y.mean()) / n
    values, vectors = np.linalg.eigh(F.T @ (w[:, None] * F))
    top = np.argsort(-np.abs(values), kind="stable")[:width]
    shares = np.abs(w)[:, None] * (F @ vectors[:, top]) ** 2
    return values[top], vectors[:width, top] ** 2, shares.max(0) / shares.sum(0)


def same_law(ours, theirs):
    """|z| < 4 between the means and Kolmogorov-Smirnov p > 1e-4, chosen before any run."""
    for one, other in zip(np.reshape(ours, (len(ours), -1)).T, np.array(theirs).T, strict=True):
        error = math.sqrt(one.var() / len(one) + other.var() / len(other))
        assert abs(one.mean() - other.mean()) < 4 * error
        assert ks_2samp(one, other).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("D", "n", "readout", "noise", "runs"),
    [
        (48, 600, "identity", 0.5, 120),
        (48, 400, "tanh", 0.0, 120),
        (40, 300, "relu", 0.3, 100),
        (60, 25, "identity", 0.0, 120),  # fewer samples than features, and than basis vectors
    ],
)
def test_run_to_the_end_has_the_law_of_the_whole_matrix(D, n, readout, noise, runs):
    random = np.random.default_rng(D + n)
    whole = [draw_whole(WEIGHTS, D, n, readout, noise, random) for _ in range(runs)]
    drawn = [
        simulate_equivalent(
            WEIGHTS,
            feature_dimension=D,
            sample_size=n,
            readout=readout,
            noise=noise,
            tolerance=1e-6,
            seed=seed,
        )
        for seed in range(runs)
    ]
    same_law([d.eigenvalues for d in drawn], [w[0] for w in whole])
    same_law([(d.overlaps**2).sum(1) for d in drawn], [w[1].sum(1) for w in whole])
    same_law([np.diag(d.overlaps) ** 2 for d in drawn], [np.diag(w[1]) for w in whole])
    same_law([d.localisation for d in drawn], [w[2] for w in whole])
    # Overlap of a direction and an estimate that is not of its rank, and second moments.
    same_law([d.overlaps[0, 1] ** 2 for d in drawn], [[w[1][0, 1]] for w in whole])
    same_law([d.eigenvalues[:2].prod() for d in drawn], [[w[0][:2].prod()] for w in whole])


def test_all_directions_known_from_the_start():
    """D = d1: C is the matrix of the latents, and there is nothing to draw."""
    result = simulate_equivalent(WEIGHTS, feature_dimension=4, sample_size=500, seed=3)
    assert (result.iterations, result.basis) == (0, 4)
    np.testing.assert_allclose(result.overlaps @ result.overlaps.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(result.residuals, 0, atol=1e-12)


def test_basis_never_outgrows_what_there_is():
    for D, n in ((10, 500), (200, 6), (30, 3)):
        result = simulate_equivalent(
            WEIGHTS, feature_dimension=D, sample_size=n, tolerance=1e-9, seed=1
        )
        assert result.basis <= min(D, n + 4)
        assert result.residuals.max() <= 1e-9 * abs(result.eigenvalues[0])
        # C has rank n at most.
        np.testing.assert_allclose(result.eigenvalues[n:], 0, atol=1e-5)


# All directions outside the bulk, some of them, none.
@pytest.mark.parametrize("ratio", [40, 12, 0.5])
@pytest.mark.parametrize("readout", ["identity", "tanh"])
def test_more_steps_change_nothing(readout, ratio):
    D = 1000
    n = int(ratio * D)
    law = LabelLaw.of(WEIGHTS, readout=readout)
    edges = predict(law, D / n).edges

    def run(tolerance, seed):
        return simulate_equivalent(
            WEIGHTS,
            feature_dimension=D,
            sample_size=n,
            readout=readout,
            edges=edges,
            tolerance=tolerance,
            seed=seed,
        )

    for seed in range(3):
        loose, tight = run(1e-3, seed), run(1e-5, seed)
        assert tight.iterations > loose.iterations or ratio == 0.5  # nothing must converge there
        clear = np.abs(loose.eigenvalues) > 1.3 * max(map(abs, edges))
        assert clear.sum() >= {40: 4, 12: 1, 0.5: 0}[ratio]
        scale = abs(tight.eigenvalues[0])
        np.testing.assert_allclose(
            loose.eigenvalues[clear], tight.eigenvalues[clear], atol=1e-3 * scale
        )
        cos2 = [(result.overlaps[:, clear] ** 2).sum(axis=1) for result in (loose, tight)]
        np.testing.assert_allclose(*cos2, atol=1e-3)
        # Nearer the bulk and other outliers an eigenvector is off by its residual over the gap.
        cos2 = [(result.overlaps**2).sum(axis=1) for result in (loose, tight)]
        assert np.abs(cos2[0] - cos2[1]).max() < 0.03 or ratio == 0.5


def test_eigenvectors_in_the_bulk_need_not_converge():
    D, n = 2000, 10_000
    edges = predict(LabelLaw.of(WEIGHTS, readout="tanh"), D / n).edges
    options = {"feature_dimension": D, "sample_size": n, "readout": "tanh", "seed": 2}
    some = simulate_equivalent(WEIGHTS, edges=edges, **options)
    every = simulate_equivalent(WEIGHTS, **options)
    limit = 1e-3 * abs(some.eigenvalues[0])
    outside = (some.eigenvalues < edges[0]) | (some.eigenvalues > edges[1])
    assert 0 < outside.sum() < 4
    assert some.residuals[outside].max() <= limit < some.residuals[~outside].max()
    assert every.residuals.max() <= limit
    assert some.basis < every.basis
    cos2 = [(result.overlaps[:, outside] ** 2).sum(axis=1) for result in (some, every)]
    np.testing.assert_allclose(*cos2, atol=1e-3)


@pytest.mark.slow
def test_overlaps_are_those_of_the_theory_at_the_papers_size():
    """d = 100, D = 5050: mean of 3 draws within 0.02, without the n x D = 1e9 numbers."""
    D, n = 5050, 200_000
    weights = power_law_weights(10, 0.4) * np.where(np.arange(10) % 3, 1, -1)
    prediction = predict(LabelLaw.of(weights), D / n)
    draws = [
        simulate_equivalent(
            weights, feature_dimension=D, sample_size=n, edges=prediction.edges, seed=seed
        )
        for seed in range(3)
    ]
    cos2 = np.mean([(draw.overlaps**2).sum(axis=1) for draw in draws], axis=0)
    assert prediction.cos2.min() > 0.5
    np.testing.assert_allclose(cos2, prediction.cos2, atol=0.02)


def run_small(**options):
    settings = {"feature_dimension": 300, "sample_size": 9000, "seed": 1} | options
    return simulate_equivalent(WEIGHTS, **settings)


def test_streams_decide_the_draw():
    first, again = run_small(stream=("a", 1)), run_small(stream=("a", 1))
    np.testing.assert_array_equal(first.overlaps, again.overlaps)
    np.testing.assert_array_equal(first.eigenvalues, again.eigenvalues)
    for other in (run_small(stream=("a", 2)), run_small(stream=("a", 1), seed=2)):
        assert np.abs(other.eigenvalues - first.eigenvalues).min() > 1e-6


@pytest.mark.slow
def test_number_of_threads_changes_nothing_but_rounding():
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(run_small(tolerance=1e-5))
    finally:
        torch.set_num_threads(before)
    one, two = results
    assert one.iterations == two.iterations
    np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, rtol=1e-5)
    np.testing.assert_allclose(one.overlaps**2, two.overlaps**2, atol=1e-4)


def test_memory_budget_is_a_limit_and_nothing_else():
    np.testing.assert_array_equal(run_small(memory_mb=50).overlaps, run_small().overlaps)
    with pytest.raises(
        NumericalError, match=r"n = 9000: \d+ basis vectors do not fit .* holds 14;"
    ):
        run_small(memory_mb=0.5)
    with pytest.raises(NumericalError, match=r"4 basis vectors do not fit .* holds 2;"):
        run_small(memory_mb=0.08)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_dimension": 3}, "1 <= d1 <= D, got 4 and 3"),
        ({"sample_size": 1}, "sample_size must be at least 2, got 1"),
    ],
)
def test_bad_sizes(options, message):
    with pytest.raises(ValueError, match=message):
        run_small(**options)


def test_no_weights():
    with pytest.raises(ValueError, match="not zero, got"):
        simulate_equivalent([], feature_dimension=5, sample_size=10)


def test_eigenvectors_of_single_labels_are_localised():
    """One direction, chi-squared labels: at n = D / 2 the largest stand alone."""
    few = simulate_equivalent([1.0], feature_dimension=2000, sample_size=1000, seed=4)
    many = simulate_equivalent([1.0], feature_dimension=400, sample_size=40_000, seed=4)
    assert few.localisation[0] > 0.5
    assert few.overlaps[0, 0] ** 2 < 0.1
    assert many.localisation[0] < 0.05
    assert many.overlaps[0, 0] ** 2 > 0.9
