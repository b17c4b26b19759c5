"""One thread or two: the declared number is kept, and the numbers agree within rounding."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = [pytest.mark.xdist_group("threads"), pytest.mark.slow]

PROGRAM = """
import json, os, sys, time
import numpy as np, torch
from spectral_laws.curvature.datasets.load import load_samples
from spectral_laws.curvature.derivatives.directional import measure_directional_curvature
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training.networks import train_networks
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.optimizers.spectral_update import spectral_update
from spectral_laws.recovery import (
    Teacher, power_law_weights, recover_equivalent, recover_features
)
from spectral_laws.settings.curvature import Model, Training
from spectral_laws.settings.data import ImageFiles

out = {}
teacher = Teacher.draw(dimension=24, degree=2, n_directions=4, gamma=0.4, seed=0)
found = [*recover_features(teacher, [3_000, 10_000], seed=0)]
found += recover_equivalent(power_law_weights(6, 0.4), [8_000], feature_dimension=600, seed=0)
out["cos2"] = [float(value) for result in found for value in result.cos2]
out["metrics"] = [float(value) for result in found for value in result.mse.values()]

generator = torch.Generator().manual_seed(1)
out["updates"] = [
    spectral_update(torch.randn(200, 300, generator=generator), alpha=a).flatten()[::997].tolist()
    for a in (2.0, 1.5)
]

samples = load_samples(ImageFiles(**DIGITS), seed=1)
mlp = Model(architecture="mlp", data="images", training="sgd", width=64, depth=2)
done = train_networks(mlp, samples, Training(**TRAINING), name="mlp", replicates=[0], seed=1)
out["losses"] = done.history[["train_loss", "test_loss"]].to_numpy().ravel().tolist()

resnet = Model(architecture="resnet18", data="images", training="sgd", width=8)
model = build_model(resnet, samples, seed=1).eval()
images = torch.from_numpy(samples.train_inputs[:32])
labels = torch.from_numpy(samples.train_targets[:32])
wall, cpu = time.perf_counter(), time.process_time()
spectra = measure_directional_curvature(model, images, labels, top_k=5)
out["cores"] = (time.process_time() - cpu) / (time.perf_counter() - wall)
out["curvatures"] = [s.directional_curvature.tolist() for s in spectra]
out["alphas"] = [fit_loglog(s.singular_values, s.directional_curvature).slope for s in spectra]
out["threads"] = torch.get_num_threads()
print(json.dumps(out))
"""
DIGITS = {"dataset": "digits", "image_size": 8, "train_size": 400, "test_size": 100}
TRAINING = {
    "optimizer": "sgd",
    "max_epochs": 3,
    "batch_size": 50,
    "learning_rate": 0.05,
    "momentum": 0.9,
    "weight_decay": 0.0005,
    "label_smoothing": 0.0,
    "target_loss": 1e-6,
}


@pytest.fixture(scope="module")
def runs():
    """What the program prints with one thread and with two, as Snakemake sets them for a job."""
    text = PROGRAM.replace("DIGITS", repr(DIGITS)).replace("TRAINING", repr(TRAINING))
    results = {}
    for threads in (1, 2):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        # A thread that waits gives its core to the other tests.
        environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
        environment |= dict.fromkeys(names, str(threads))
        done = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        results[threads] = json.loads(done.stdout.splitlines()[-1])
    return results


def test_jobs_use_the_threads_that_they_are_given(runs):
    assert {threads: run["threads"] for threads, run in runs.items()} == {1: 1, 2: 2}
    assert runs[1]["cores"] < 1.1


# Chosen before any value was seen: float32 sums of up to 1e5 terms in another order are off by up
# to some 1e-5, eigenvectors and fits by ten times that.
@pytest.mark.parametrize(
    ("name", "tolerance"), [("cos2", 1e-4), ("metrics", 1e-4), ("alphas", 1e-3)]
)
def test_results_agree_within_rounding(runs, name, tolerance):
    one, two = (np.array(runs[threads][name]) for threads in (1, 2))
    assert len(one) > 5
    np.testing.assert_allclose(one, two, rtol=0, atol=tolerance)


def test_curvatures_and_updates_agree_within_rounding_of_the_largest(runs):
    for name in ("curvatures", "updates"):
        for one, two in zip(runs[1][name], runs[2][name], strict=True):
            largest = np.abs(one).max()
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-4 * largest)


def test_a_short_training_agrees_to_a_thousandth(runs):
    # Rounding grows along a training; over many epochs two runs part, as two seeds do.
    np.testing.assert_allclose(runs[1]["losses"], runs[2]["losses"], rtol=1e-3)
