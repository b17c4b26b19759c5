"""Generated images and generated language."""

import numpy as np
import pytest

from spectral_laws.curvature.datasets.language import RESTART, MarkovChains, generate_language
from spectral_laws.curvature.datasets.synthetic_images import class_pattern, generate_images
from spectral_laws.settings.data import SyntheticImages, SyntheticLanguage


def images(**changes) -> SyntheticImages:
    values = {"dataset": "synthetic_images", "n_classes": 10, "channels": 1, "noise": 1.0}
    sizes = {"image_size": 16, "train_size": 400, "test_size": 200}
    return SyntheticImages(**(values | sizes | changes))


def language(**changes) -> SyntheticLanguage:
    values = {"dataset": "synthetic_language", "task": "language_modelling", "vocabulary": 50}
    more = {"zipf_exponent": 1.0, "n_chains": 4, "context": 40, "train_size": 300, "test_size": 100}
    return SyntheticLanguage(**(values | more | changes))


def nearest_mean_accuracy(settings: SyntheticImages) -> float:
    samples = generate_images(settings, seed=1)
    train = samples.train_inputs.reshape(len(samples.train_inputs), -1).astype(np.float64)
    test = samples.test_inputs.reshape(len(samples.test_inputs), -1).astype(np.float64)
    means = np.stack(
        [train[samples.train_targets == label].mean(0) for label in range(settings.n_classes)]
    )
    scores = test @ means.T - (means**2).sum(1) / 2
    return float((scores.argmax(1) == samples.test_targets).mean())


def test_classes_can_be_learned_at_low_noise_and_not_at_huge_noise():
    assert nearest_mean_accuracy(images(noise=0.5)) == 1
    assert nearest_mean_accuracy(images(noise=1e4)) < 0.25  # chance is 0.1
    assert nearest_mean_accuracy(images(n_classes=200, noise=0.5)) == 1


@pytest.mark.parametrize("n_classes", [2, 7, 1000])
def test_labels_are_balanced_and_complete(n_classes):
    samples = generate_images(images(n_classes=n_classes, train_size=1000, image_size=8), seed=1)
    counts = np.bincount(samples.train_targets, minlength=n_classes)
    assert counts.min() >= 1
    assert counts.max() - counts.min() <= 1
    assert not np.array_equal(samples.train_targets, np.sort(samples.train_targets))


def test_pixels_have_the_stated_mean_square_and_the_noise_its_share():
    settings = images(channels=3, noise=0.7, train_size=2000, n_classes=4)
    samples = generate_images(settings, seed=2)
    assert (samples.train_inputs**2).mean() == pytest.approx(1, rel=5e-3)
    patterns = np.stack([class_pattern(c, 3, 16, seed=2) for c in range(4)])
    scale = np.sqrt(1 + 0.7**2)
    noise = samples.train_inputs * scale - patterns[samples.train_targets]
    assert noise.std() == pytest.approx(0.7, rel=5e-3)
    assert np.corrcoef(noise[:, 0].ravel(), noise[:, 1].ravel())[0, 1] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("size", [8, 16, 33])
def test_patterns_are_smooth_with_mean_square_one(size):
    pattern = class_pattern(3, 2, size, seed=1)
    assert (pattern**2).mean() == pytest.approx(1, abs=1e-12)
    power = np.abs(np.fft.fft2(pattern)) ** 2
    frequencies = np.abs(np.fft.fftfreq(size, 1 / size))
    allowed = (frequencies[:, None] <= 3) & (frequencies <= 3)
    assert power[:, ~allowed].max() < 1e-18 * power.max()
    assert power[:, 0, 0].max() < 1e-18 * power.max()


def test_a_pattern_is_the_same_field_at_every_size():
    # Every third pixel centre of 48 is a pixel centre of 16.
    coarse, fine = class_pattern(0, 1, 16, seed=1), class_pattern(0, 1, 48, seed=1)
    np.testing.assert_allclose(fine[:, 1::3, 1::3], coarse, atol=1e-10)


def test_images_do_not_depend_on_how_many_there_are():
    small = generate_images(images(), seed=1)
    large = generate_images(images(train_size=900, test_size=300), seed=1)
    np.testing.assert_array_equal(small.train_inputs, large.train_inputs[:400])
    np.testing.assert_array_equal(small.test_targets, large.test_targets[:200])
    wider = [class_pattern(4, 1, 16, seed=1) for _ in range(2)]
    np.testing.assert_array_equal(*wider)
    assert not np.allclose(class_pattern(4, 1, 16, seed=1), class_pattern(5, 1, 16, seed=1))


def entropy(p: np.ndarray) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("vocabulary", [2, 30, 100])
def test_zipfs_law_is_exactly_stationary_for_every_chain(vocabulary, exponent):
    chains = MarkovChains.draw(vocabulary, exponent, 3, seed=1)
    p = chains.probabilities()
    expected = np.arange(1, vocabulary + 1) ** -float(exponent)
    np.testing.assert_allclose(p, expected / expected.sum(), rtol=1e-10)
    for chain in range(3):
        transitions = chains.transitions(chain)
        np.testing.assert_allclose(transitions.sum(1), 1, rtol=1e-10)
        np.testing.assert_allclose(p @ transitions, p, rtol=1e-10)
        assert transitions.min() >= RESTART * p.min() * (1 - 1e-12)


def test_sequences_follow_the_transition_matrix_and_zipfs_slope():
    chains = MarkovChains.draw(12, 1.2, 2, seed=4)
    n = 4000
    sequences = chains.sequences(np.repeat([0, 1], n), 51, np.random.default_rng(0))
    for chain, tokens in enumerate((sequences[:n], sequences[n:])):
        counts = np.zeros((12, 12))
        np.add.at(counts, (tokens[:, :-1].ravel(), tokens[:, 1:].ravel()), 1)
        expected = chains.probabilities()[:, None] * chains.transitions(chain) * counts.sum()
        # Poisson counts: 144 standardised deviations, none above 5, mean square near 1.
        deviations = (counts - expected) / np.sqrt(expected)
        assert np.abs(deviations).max() < 5
        assert 0.6 < (deviations**2).mean() < 1.4
        frequencies = np.bincount(tokens.ravel(), minlength=12)
        slope = np.polyfit(np.log(np.arange(1, 13)), np.log(frequencies), 1)[0]
        assert slope == pytest.approx(-1.2, abs=0.05)


def test_the_slope_of_generated_tokens_is_the_exponent():
    samples = generate_language(language(train_size=3000, zipf_exponent=0.9), seed=1)
    frequencies = np.bincount(samples.train_inputs.ravel(), minlength=50)
    slope = np.polyfit(np.log(np.arange(1, 51)), np.log(frequencies), 1)[0]
    assert slope == pytest.approx(-0.9, abs=0.05)


def test_there_is_something_to_learn():
    chains = MarkovChains.draw(50, 1.0, 4, seed=1)
    p = chains.probabilities()
    matrices = [chains.transitions(chain) for chain in range(4)]
    rates = [sum(p[r] * entropy(m[r]) for r in range(50)) for m in matrices]
    mixture = np.mean(matrices, axis=0)
    mixed_rate = sum(p[r] * entropy(mixture[r]) for r in range(50))
    # Knowing the last token helps, knowing the chain helps more.
    assert max(rates) < mixed_rate - 0.2 < entropy(p) - 0.4 < np.log(50)


def test_chains_are_told_apart_by_their_transitions():
    settings = language(task="classification")
    samples = generate_language(settings, seed=1)
    chains = MarkovChains.draw(50, 1.0, 4, seed=1)
    logs = np.log(np.stack([chains.transitions(chain) for chain in range(4)]))
    tokens = samples.test_inputs
    scores = logs[:, tokens[:, :-1], tokens[:, 1:]].sum(2)
    assert (scores.argmax(0) == samples.test_targets).mean() > 0.98
    # But not by how often tokens occur: all chains have one stationary law.
    counts = np.stack([np.bincount(row, minlength=50) for row in samples.train_inputs])
    means = np.stack([counts[samples.train_targets == c].mean(0) for c in range(4)])
    test_counts = np.stack([np.bincount(row, minlength=50) for row in tokens])
    distances = ((test_counts[:, None] - means) ** 2).sum(2)
    assert (distances.argmin(1) == samples.test_targets).mean() < 0.45  # chance is 0.25


def test_both_tasks_have_the_same_tokens():
    modelling = generate_language(language(), seed=1)
    classifying = generate_language(language(task="classification"), seed=1)
    np.testing.assert_array_equal(modelling.train_inputs, classifying.train_inputs)
    np.testing.assert_array_equal(modelling.test_inputs, classifying.test_inputs)
    np.testing.assert_array_equal(modelling.train_inputs[:, 1:], modelling.train_targets[:, :-1])
    assert (modelling.n_classes, classifying.n_classes) == (50, 4)
    assert modelling.n_tokens == classifying.n_tokens == 50
    counts = np.bincount(classifying.train_targets)
    assert counts.tolist() == [75] * 4


def test_sequences_do_not_depend_on_how_many_there_are():
    small = generate_language(language(), seed=1)
    large = generate_language(language(train_size=5000), seed=1)
    np.testing.assert_array_equal(small.train_inputs, large.train_inputs[:300])
    np.testing.assert_array_equal(small.test_inputs, large.test_inputs)


def test_a_large_vocabulary_is_no_matter():
    samples = generate_language(language(vocabulary=100_000, train_size=32, test_size=32), seed=1)
    assert samples.n_classes == 100_000
    assert samples.train_inputs.max() > 1000
