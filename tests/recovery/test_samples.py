"""Samples are the same numbers on every pass, for every sample size and every way to compute."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from spectral_laws.recovery.moment import MomentMatrix
from spectral_laws.recovery.samples import GENERATION_BLOCK, Samples
from spectral_laws.recovery.teacher import Teacher

N = 2 * GENERATION_BLOCK + 1000  # three blocks, the last one cut


@pytest.fixture(scope="module", params=[1, 2, 3])
def teacher(request):
    return Teacher.draw(
        dimension=7, degree=request.param, n_directions=3, gamma=0.4, noise=0.5, seed=1
    )


def test_smaller_sample_is_a_prefix(teacher):
    small = Samples(teacher, "train", 0, seed=1)
    large = Samples(teacher, "train", 0, seed=1)
    large.labels(N)
    for n in (3, GENERATION_BLOCK, GENERATION_BLOCK + 5):
        np.testing.assert_array_equal(small.inputs(n), large.inputs(N)[:n])
        np.testing.assert_array_equal(small.labels(n), large.labels(N)[:n])


def test_inputs_are_standard_normal(teacher):
    inputs = Samples(teacher, "train", 0, seed=1).inputs(N)
    assert inputs.shape == (N, 7)
    covariance = inputs.T @ inputs / N
    assert np.abs(covariance - np.eye(7)).max() < 5 * np.sqrt(2 / N)
    assert np.abs(inputs.mean(0)).max() < 5 / np.sqrt(N)
    # Blocks and streams are different numbers.
    assert not np.allclose(inputs[:100], inputs[GENERATION_BLOCK : GENERATION_BLOCK + 100])
    for other in (Samples(teacher, "test", 0, seed=1), Samples(teacher, "train", 1, seed=1)):
        assert np.abs(other.inputs(100) - inputs[:100]).max() > 0.1


def test_labels_are_the_teachers(teacher):
    samples = Samples(teacher, "train", 0, seed=1, dtype=torch.float64, noiseless=True)
    np.testing.assert_allclose(samples.labels(N), teacher.labels(samples.inputs(N)), atol=1e-11)
    single = Samples(teacher, "train", 0, seed=1, noiseless=True)
    np.testing.assert_allclose(single.labels(N), samples.labels(N), atol=2e-4)


def test_noise_is_normal_and_independent_of_everything_else(teacher):
    noisy = Samples(teacher, "train", 0, seed=1, dtype=torch.float64)
    clean = Samples(teacher, "train", 0, seed=1, dtype=torch.float64, noiseless=True)
    np.testing.assert_array_equal(noisy.inputs(N), clean.inputs(N))
    noise = (noisy.labels(N) - clean.labels(N)) / teacher.noise
    assert kstest(noise, "norm").pvalue > 1e-4
    others = np.c_[noisy.inputs(N), clean.labels(N)]
    assert np.abs(noise @ (others / others.std(0)) / N).max() < 5 / np.sqrt(N)
    assert not np.allclose(noise[:100], noise[GENERATION_BLOCK : GENERATION_BLOCK + 100])
    # Another stream has another noise; a teacher with twice the noise has the same one, doubled.
    other = Samples(teacher, "second", 0, seed=1).labels(100)
    assert np.abs(other - Samples(teacher, "second", 0, seed=1, noiseless=True).labels(100)).max()
    louder = Samples(replace(teacher, noise=1.0), "train", 0, seed=1, dtype=torch.float64)
    np.testing.assert_allclose(louder.labels(N) - clean.labels(N), noise, atol=1e-12)


def test_projection_is_features_times_vectors(teacher):
    samples = Samples(teacher, "test", 0, seed=1, dtype=torch.float64)
    h1 = samples.project(500, teacher.directions)
    np.testing.assert_allclose(h1, teacher.first_latents(samples.inputs(500)), atol=1e-12)


@pytest.mark.parametrize("memory_mb", [0.0, 0.15, 100.0])  # none, some, all blocks kept
def test_memory_budget_changes_nothing(teacher, memory_mb):
    reference = Samples(teacher, "train", 0, seed=1, memory_mb=100.0)
    samples = Samples(teacher, "train", 0, seed=1, memory_mb=memory_mb)
    vectors = torch.from_numpy(np.random.default_rng(0).standard_normal((4, samples.map.size)))
    for _ in range(2):  # the second pass reads what the first one kept
        np.testing.assert_array_equal(
            MomentMatrix(samples, N).apply(vectors).numpy(),
            MomentMatrix(reference, N).apply(vectors).numpy(),
        )
        np.testing.assert_array_equal(samples.labels(N), reference.labels(N))
        np.testing.assert_array_equal(samples.inputs(N), reference.inputs(N))
    kept = {0.0: 0, 0.15: 1, 100.0: 3}[memory_mb]
    assert len(samples._inputs) == kept


@pytest.mark.parametrize("chunk", [7, 100, 1024, 10**6])
def test_chunk_changes_nothing_but_rounding(teacher, chunk):
    n = 5000
    samples = Samples(teacher, "train", 0, seed=1, dtype=torch.float64, chunk=chunk)
    reference = Samples(teacher, "train", 0, seed=1, dtype=torch.float64)
    vectors = torch.from_numpy(np.random.default_rng(0).standard_normal((4, samples.map.size)))
    np.testing.assert_allclose(
        MomentMatrix(samples, n).apply(vectors).numpy(),
        MomentMatrix(reference, n).apply(vectors).numpy(),
        atol=1e-11,
    )
    np.testing.assert_array_equal(samples.inputs(n), reference.inputs(n))
    np.testing.assert_allclose(samples.labels(n), reference.labels(n), atol=1e-11)


def test_threads_change_nothing_but_rounding(teacher):
    before = torch.get_num_threads()
    vectors = None
    results, labels, inputs = [], [], []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            samples = Samples(teacher, "train", 0, seed=1)
            if vectors is None:
                shape = (4, samples.map.size)
                vectors = torch.from_numpy(np.random.default_rng(0).standard_normal(shape))
            results.append(MomentMatrix(samples, N).apply(vectors).numpy())
            labels.append(samples.labels(N))
            inputs.append(samples.inputs(N))
    finally:
        torch.set_num_threads(before)
    scale = np.abs(results[0]).max()
    np.testing.assert_allclose(results[0], results[1], atol=1e-5 * scale)
    np.testing.assert_allclose(labels[0], labels[1], atol=1e-4)
    np.testing.assert_array_equal(inputs[0], inputs[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu(teacher):
    results = []
    for device in ("cpu", "cuda"):
        samples = Samples(teacher, "train", 0, seed=1, device=device, dtype=torch.float64)
        vectors = torch.eye(samples.map.size, dtype=torch.float64)[:4]
        results.append(MomentMatrix(samples, N).apply(vectors).cpu().numpy())
    np.testing.assert_allclose(results[0], results[1], atol=1e-10)
