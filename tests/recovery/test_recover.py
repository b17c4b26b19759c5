"""The whole algorithm, for Hermite features and for their Gaussian equivalent."""

import math

import numpy as np
import pytest

from spectral_laws.errors import ConfigError, NumericalError
from spectral_laws.recovery.equivalent import simulate_equivalent
from spectral_laws.recovery.evaluate import localised_share
from spectral_laws.recovery.hermite import hermite_features
from spectral_laws.recovery.label_law import LabelLaw
from spectral_laws.recovery.readout import ScalarReadout, normalised_mse, second_latent
from spectral_laws.recovery.recover import recover_equivalent, recover_features
from spectral_laws.recovery.samples import Samples
from spectral_laws.recovery.scaling_laws import tail_mse
from spectral_laws.recovery.teacher import Teacher, power_law_weights
from spectral_laws.recovery.theory import SECOND_LAYERS, predict, predict_mse

SMALL = {"test_size": 3000, "readout_size": 1000}


@pytest.fixture(scope="module")
def linear():
    teacher = Teacher.draw(dimension=40, degree=1, n_directions=5, gamma=0.4, seed=1)
    return teacher, recover_features(teacher, [60, 1000, 20_000], seed=1, **SMALL)


def test_directions_are_recovered_with_enough_samples(linear):
    _, recoveries = linear
    assert recoveries[0].n_recovered == 0
    assert recoveries[-1].n_recovered == 5
    assert recoveries[-1].cos2.min() > 0.9
    overlaps = [recovery.feature_overlap for recovery in recoveries]
    assert overlaps == sorted(overlaps)
    for name in SECOND_LAYERS:
        errors = [recovery.mse[name] for recovery in recoveries]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.1


def test_eigenvalues_approach_those_of_the_population(linear):
    teacher, recoveries = linear
    # E C has the eigenvalues sqrt(2) lambda_i exactly when the latents are Gaussian (degree 1).
    expected = np.sqrt(2) * teacher.weights
    np.testing.assert_allclose(recoveries[-1].estimate.eigenvalues, expected, atol=0.12)


def test_theory_stands_beside_the_measurement(linear):
    teacher, recoveries = linear
    law = LabelLaw.of(teacher.weights)
    for recovery in recoveries:
        n = recovery.sample_size
        prediction = predict(law, 40 / n)
        assert recovery.prediction.edges == prediction.edges
        np.testing.assert_array_equal(recovery.predicted_cos2, prediction.visible(n).cos2)
        for name in SECOND_LAYERS:
            assert recovery.predicted_mse[name] == predict_mse(law, prediction, name)
        assert recovery.tail_mse == float(tail_mse(n, 40, teacher.weights))
        assert recovery.estimate.residual <= 1e-4
        values = recovery.estimate.eigenvalues
        outside = (values < prediction.edges[0]) | (values > prediction.edges[1])
        np.testing.assert_array_equal(recovery.outside, outside)
        localised = recovery.estimate.localisation >= localised_share(n)
        np.testing.assert_array_equal(recovery.spurious, outside & localised)
    assert localised_share(recoveries[0].sample_size) > 1  # so few samples cannot tell
    assert not recoveries[-1].spurious.any()
    np.testing.assert_allclose(recoveries[-1].cos2, recoveries[-1].predicted_cos2, atol=0.03)


@pytest.mark.parametrize(
    ("degree", "dimension", "n", "noise", "n_spurious"),
    [(2, 8, 3000, 0.0, 0), (1, 30, 2000, 0.4, 0), (1, 30, 15, 0.0, 0)],
)
def test_measurements_again_from_their_definitions(degree, dimension, n, noise, n_spurious):
    """With explicit matrices in float64, from the inputs on."""
    teacher = Teacher.draw(
        dimension=dimension,
        degree=degree,
        n_directions=3,
        gamma=0.4,
        readout="identity" if n == 15 else "tanh",
        noise=noise,
        seed=2,
    )
    (recovery,) = recover_features(
        teacher, [n], seed=2, replicate=4, dtype="float64", tolerance=1e-9, **SMALL
    )
    estimate = recovery.estimate
    data = {}
    for name, size in (("train", n), ("second", n), ("test", 3000), ("readout", 1000)):
        draw = Samples(teacher, name, degree, dimension, 4, seed=2, noiseless=name == "test")
        data[name] = hermite_features(draw.inputs(size), degree), draw.labels(size)
    test_labels = teacher.respond(data["test"][0] @ teacher.directions.T)
    np.testing.assert_allclose(data["test"][1], test_labels, atol=1e-4)  # without noise

    F, y = data["train"]
    w = (y - y.mean()) / n
    values, vectors = np.linalg.eigh(F.T @ (w[:, None] * F))
    top = np.argsort(-np.abs(values))[:3]
    values, U = values[top], vectors[:, top].T
    np.testing.assert_allclose(estimate.eigenvalues, values, atol=1e-5)
    overlaps = (U @ teacher.directions.T) ** 2
    np.testing.assert_allclose(estimate.cos2, overlaps.sum(0), atol=1e-5)
    np.testing.assert_allclose(estimate.matched_overlap**2, np.diag(overlaps), atol=1e-5)
    shares = np.abs(w)[:, None] * (F @ U.T) ** 2
    np.testing.assert_allclose(estimate.localisation, shares.max(0) / shares.sum(0), atol=1e-5)

    latents = {name: features @ U.T for name, (features, _) in data.items()}
    layers = {}
    for name, source in (("same_sample", "train"), ("independent", "second")):
        h, labels = latents[source], data[source][1]
        layers[name] = np.einsum("n,ni,nj->ij", labels - labels.mean(), h, h) / n
    np.testing.assert_allclose(
        np.abs(estimate.independent), np.abs(layers["independent"]), atol=1e-5
    )
    low, high = recovery.prediction.edges
    outside = (values < low) | (values > high)
    spurious = outside & (estimate.localisation >= localised_share(n))
    assert spurious.sum() == n_spurious
    np.testing.assert_array_equal(recovery.outside, outside)
    kept = outside & ~spurious
    layers["outliers"] = layers["same_sample"] * np.outer(kept, kept)
    for name, layer in layers.items():
        fit = ScalarReadout.fit(second_latent(layer, latents["readout"]), data["readout"][1])
        predicted = fit.predict(second_latent(layer, latents["test"]))
        error = normalised_mse(predicted, data["test"][1])
        assert recovery.mse[name] == pytest.approx(error, rel=1e-4)


def test_warm_start_equals_cold_start(monkeypatch):
    monkeypatch.setattr("spectral_laws.recovery.recover._DENSE_SHARE", 0)
    teacher = Teacher.draw(dimension=16, n_directions=3, gamma=0.4, seed=3)
    options = {"seed": 3, "dtype": "float64", "tolerance": 1e-8} | SMALL
    warm = recover_features(teacher, [50, 9900, 10_000], **options)[-1]
    (cold,) = recover_features(teacher, [10_000], **options)
    assert warm.estimate.iterations < cold.estimate.iterations
    np.testing.assert_allclose(warm.estimate.eigenvalues, cold.estimate.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(warm.cos2, cold.cos2, atol=1e-7)
    for name in SECOND_LAYERS:
        assert warm.mse[name] == pytest.approx(cold.mse[name], abs=1e-6)


def test_memory_budget_changes_nothing():
    teacher = Teacher.draw(dimension=9, n_directions=3, gamma=0.4, seed=3)
    kept, drawn_again = (
        recover_features(teacher, [9000], seed=3, memory_mb=memory_mb, **SMALL)[0]
        for memory_mb in (100, 0)
    )
    np.testing.assert_array_equal(kept.estimate.eigenvalues, drawn_again.estimate.eigenvalues)
    np.testing.assert_array_equal(kept.cos2, drawn_again.cos2)
    assert kept.mse == drawn_again.mse


def test_without_genuine_outliers_the_readout_is_the_mean(linear):
    teacher, _ = linear
    recovery = recover_features(teacher, [20], seed=1, **SMALL)[0]
    test, readout = (
        Samples(teacher, name, 1, 40, 0, seed=1).labels(size)
        for name, size in (("test", 3000), ("readout", 1000))
    )
    assert np.array_equal(recovery.outside, recovery.spurious)
    expected = 1 + (test.mean() - readout.mean()) ** 2 / test.var()
    assert recovery.mse["outliers"] == pytest.approx(expected, rel=1e-12)
    assert recovery.predicted_mse["outliers"] == 1.0
    assert recovery.mse["same_sample"] != pytest.approx(expected, rel=1e-6)


def test_fewer_samples_than_directions(linear):
    teacher, _ = linear
    (recovery,) = recover_features(teacher, [3], seed=1, **SMALL)
    np.testing.assert_allclose(recovery.estimate.eigenvalues[3:], 0, atol=1e-5)
    assert np.all(recovery.cos2 <= 1)
    (equivalent,) = recover_equivalent(teacher.weights, [3], feature_dimension=40, **SMALL)
    assert np.all(equivalent.cos2 <= 1)


@pytest.mark.parametrize("sizes", [[], [1, 10], [10, 10], [20, 10]])
def test_bad_grids(sizes):
    teacher = Teacher.draw(dimension=5, degree=1, n_directions=2, gamma=0.4)
    with pytest.raises(ConfigError, match="increasing and at least 2"):
        recover_features(teacher, sizes)
    with pytest.raises(ConfigError, match="increasing and at least 2"):
        recover_equivalent(teacher.weights, sizes, feature_dimension=5)


def test_no_convergence_names_the_case():
    teacher = Teacher.draw(dimension=30, n_directions=2, gamma=0.4)
    with pytest.raises(NumericalError, match=r"d = 30, n = 300: .* 2 iterations, residual"):
        recover_features(teacher, [300], max_iterations=2, **SMALL)
    with pytest.raises(NumericalError, match=r"n = 300: .* basis vectors do not fit"):
        recover_equivalent([1.0], [300], feature_dimension=500, memory_mb=1e-3, **SMALL)


# The Gaussian equivalent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("readout", "noise", "n"),
    [("identity", 0.0, 1200), ("relu", 0.3, 1500)],
)
def test_equivalent_and_degree_one_teachers_have_one_law(readout, noise, n):
    """Features of degree 1 are Gaussian. Means of 10 runs, |z| < 4 and 0.01 for the readouts."""
    runs, weights = 10, power_law_weights(3, 0.4) * [1, 1, -1]
    directions = np.eye(3, 50)
    teacher = Teacher(directions, weights, 50, 1, readout, noise)
    options = {"test_size": 5000, "readout_size": 4000}
    true = [recover_features(teacher, [n], replicate=k, **options)[0] for k in range(runs)]
    drawn = [
        recover_equivalent(
            weights,
            [n],
            feature_dimension=50,
            readout=readout,
            noise=noise,
            stream=(k,),
            tolerance=1e-4,
            **options,
        )[0]
        for k in range(runs)
    ]
    seen = true[0].predicted_cos2 > 0
    assert seen.sum() >= 2

    def compare(measure, slack=0.0):
        one, other = (np.array([measure(run) for run in kind]) for kind in (true, drawn))
        error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / runs)
        assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error + slack)

    compare(lambda run: run.cos2[seen])
    compare(lambda run: run.estimate.eigenvalues[: seen.sum()])
    compare(lambda run: run.estimate.localisation[: seen.sum()])
    compare(lambda run: run.feature_overlap, 0.01)
    for name in SECOND_LAYERS:
        compare(lambda run, name=name: run.mse[name], 0.01)
    for one, other in zip(true, drawn, strict=True):
        assert one.predicted_mse == other.predicted_mse
        assert one.tail_mse == other.tail_mse
        np.testing.assert_array_equal(one.predicted_cos2, other.predicted_cos2)


@pytest.mark.slow
@pytest.mark.parametrize("readout", ["identity", "tanh"])
def test_theory_predicts_overlaps_and_errors_of_the_equivalent(readout):
    """D = 5000, n = 25 D and 80 D, means of 3 draws: within 0.03 and 0.05, fixed beforehand."""
    weights = power_law_weights(5, 0.6) * [1, -1, 1, -1, 1]
    grids = [
        recover_equivalent(
            weights, [125_000, 400_000], feature_dimension=5000, readout=readout, seed=seed
        )
        for seed in range(3)
    ]
    assert all(2 <= grid[0].n_recovered <= grid[1].n_recovered == 5 for grid in grids)
    for draws in zip(*grids, strict=True):
        cos2 = np.mean([draw.cos2 for draw in draws], axis=0)
        # Near the bulk's edge single labels resonate with an outlier, or take its place.
        prediction = draws[0].prediction
        sure = np.abs(prediction.positions) > 1.2 * max(map(abs, prediction.edges))
        assert sure.sum() >= 2
        np.testing.assert_allclose(cos2[sure], draws[0].predicted_cos2[sure], atol=0.03)
        for name in SECOND_LAYERS if sure.all() else ("independent",):
            mse = np.mean([draw.mse[name] for draw in draws])
            assert mse == pytest.approx(draws[0].predicted_mse[name], abs=0.05)


def test_bulk_eigenvectors_of_the_equivalent_count_as_nothing():
    weights = power_law_weights(5, 0.6)
    (recovery,) = recover_equivalent(
        weights, [15_000], feature_dimension=5000, readout="tanh", **SMALL
    )
    edge = max(recovery.prediction.edges, key=abs)
    hidden = np.abs(recovery.estimate.eigenvalues) <= abs(edge)
    drawn = simulate_equivalent(
        weights,
        feature_dimension=5000,
        sample_size=15_000,
        readout="tanh",
        edges=recovery.prediction.edges,
        stream=(15_000,),
    )
    kept = np.abs(drawn.eigenvalues) > abs(edge)
    assert 0 < kept.sum() < 5
    np.testing.assert_array_equal(hidden, ~kept)
    np.testing.assert_array_equal(recovery.estimate.eigenvalues[hidden], edge)
    np.testing.assert_allclose(recovery.cos2, (drawn.overlaps[:, kept] ** 2).sum(1), atol=1e-12)
    assert np.all(recovery.estimate.matched_overlap[hidden] == 0)
    assert recovery.estimate.residual <= 1e-3


def test_independent_second_layer_of_the_equivalent_is_a_sample_average():
    """E A2_kk = sum_i sqrt2 lambda_i O_ik^2, with standard deviation below 4 / sqrt n."""
    weights, n = np.array([0.8, -0.6]), 300_000
    (recovery,) = recover_equivalent(weights, [n], feature_dimension=2000, **SMALL)
    drawn = simulate_equivalent(
        weights,
        feature_dimension=2000,
        sample_size=n,
        edges=recovery.prediction.edges,
        stream=(n,),
    )
    expected = math.sqrt(2) * drawn.overlaps.T @ (weights[:, None] * drawn.overlaps)
    np.testing.assert_allclose(recovery.estimate.independent, expected, atol=16 / math.sqrt(n))
    assert np.abs(recovery.estimate.independent - expected).max() > 1e-5


def test_noise_lowers_overlaps():
    teacher = Teacher.draw(dimension=60, degree=1, n_directions=3, gamma=0.4, seed=1)
    noisy = Teacher(teacher.directions, teacher.weights, 60, 1, "identity", 2.0)
    clean_run, noisy_run = (recover_features(t, [3000], **SMALL)[0] for t in (teacher, noisy))
    assert noisy_run.cos2.sum() < clean_run.cos2.sum()
    assert noisy_run.predicted_cos2.sum() < clean_run.predicted_cos2.sum()
    options = {"feature_dimension": 2000} | SMALL
    clean_run, noisy_run = (
        recover_equivalent(teacher.weights, [60_000], noise=noise, **options)[0]
        for noise in (0.0, 2.0)
    )
    assert np.all(noisy_run.cos2 < clean_run.cos2)
    assert np.all(noisy_run.predicted_cos2 < clean_run.predicted_cos2)
    np.testing.assert_allclose(noisy_run.cos2, noisy_run.predicted_cos2, atol=0.05)


def test_equivalent_streams():
    def run(**options):
        where = {"feature_dimension": 300, "seed": 1, "stream": ("a", 1)} | SMALL
        return recover_equivalent([0.8, -0.6], [3000, 6000], **(where | options))

    first, again = run(), run()
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.cos2, other.cos2)
        assert one.mse == other.mse
    # A sample size's draw does not depend on the rest of the grid.
    (alone,) = recover_equivalent(
        [0.8, -0.6], [6000], feature_dimension=300, seed=1, stream=("a", 1), **SMALL
    )
    np.testing.assert_array_equal(alone.cos2, first[1].cos2)
    for other in (run(stream=("a", 2)), run(seed=2)):
        assert np.all(other[0].cos2 != first[0].cos2)


def test_forming_the_matrix_and_applying_it_find_the_same(monkeypatch):
    teacher = Teacher.draw(dimension=60, degree=1, n_directions=4, gamma=0.4, seed=2)
    arguments = {"seed": 2, "tolerance": 1e-7, **SMALL}
    formed = recover_features(teacher, [600, 6000], **arguments)
    monkeypatch.setattr("spectral_laws.recovery.recover._DENSE_SHARE", 0)
    applied = recover_features(teacher, [600, 6000], **arguments)
    for one, other in zip(formed, applied, strict=True):
        assert one.estimate.iterations == 1 < other.estimate.iterations
        np.testing.assert_allclose(one.estimate.eigenvalues, other.estimate.eigenvalues, atol=1e-5)
        np.testing.assert_allclose(one.cos2, other.cos2, atol=1e-4)


def test_outliers_of_single_labels_are_spurious_and_genuine_ones_are_not():
    weights = np.ones(1)
    (few,) = recover_equivalent(weights, [2000], feature_dimension=2000, seed=4, **SMALL)
    assert few.outside.all()
    assert few.spurious.all()
    assert few.mse["outliers"] > 0.99  # nothing is left of the second layer
    for seed in range(3):
        genuine = recover_equivalent(weights, [400], feature_dimension=60, seed=seed, **SMALL)[0]
        assert genuine.cos2[0] > 0.5
        assert not genuine.spurious.any()
