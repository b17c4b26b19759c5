"""Tables of the optimizers room, each made once with planted gains."""

import itertools
import math

import numpy as np
import pandas as pd

RACERS = {
    "adamw": 0.0,
    "spectral_newton_1": 1.0,
    "spectral_newton_2": 2.0,
    "spectral_newton_measured": 1.5,
    "muon": 1.8,
    "soap": 0.6,
    "sgd": -0.5,
    "sgd_by_damping": -4.0,
}
"""Methods of the race, and their gains over AdamW in points."""


def make_race(
    *,
    gains=None,
    loss_gain=0.05,
    tasks=None,
    seeds=5,
    epochs=3,
    steps=60,
    n_test=400,
    noise=0.1,
    base=90.0,
):
    """Accuracies around ``base`` % plus a planted gain in points by method, paired by seed.

    ``tasks`` by race. Loss falls by ``loss_gain`` nats per point of gain. Earlier epochs have other
    values in another order of the methods, so that only the last one gives the planted gains.
    """
    gains = RACERS | (gains or {})
    tasks = tasks or {"images": "classification", "text": "language_modelling"}
    rows = []
    for place, (race, task) in enumerate(tasks.items()):
        for seed in range(seeds):
            rng = np.random.default_rng([place, seed, 17])
            shared = base + 3 * rng.normal()
            for method, gain in gains.items():
                points = shared + gain + noise * rng.normal()
                for epoch in range(1, epochs + 1):
                    now = points if epoch == epochs else 50 - 3 * gain + epoch
                    rows.append(
                        {
                            "race": race,
                            "task": task,
                            "model": "gpt2" if task == "language_modelling" else "resnet18",
                            "train_size": 500,
                            "steps": steps,
                            "method": method,
                            "seed": seed,
                            "epoch": epoch,
                            "test_loss": 1.0 - loss_gain * (now - base),
                            "test_accuracy": now / 100,
                            "diverged": False,
                            "n_test": n_test,
                        }
                    )
    return pd.DataFrame(rows)


def make_tuning(race, *, chosen=None, rates=(0.001, 0.003, 0.01), decays=(0.0, 0.1), trainings=1):
    """The grid of every method in every race, with the middle learning rate or ``chosen``."""
    rows = []
    for name, method in itertools.product(race["race"].unique(), race["method"].unique()):
        best = ((chosen or {}).get(method, rates[len(rates) // 2]), 0.0)
        for rate, decay in itertools.product(rates, decays):
            rows.append(
                {
                    "race": name,
                    "method": method,
                    "learning_rate": rate,
                    "weight_decay": decay,
                    "validation_loss": 1.0 + abs(math.log(rate / best[0])) + decay,
                    "diverged": False,
                    "trainings": trainings,
                    "chosen": (rate, decay) == best,
                }
            )
    return pd.DataFrame(rows)


def make_layer_rates(
    *, gains=None, models=("mlp",), races=("images",), seeds=5, noise=0.1, scaled=4, n_test=400
):
    """Accuracies around 97 % plus a planted gain in points by variant, paired by training."""
    gains = {"b = 0.5": 0.1, "b = 1": -0.2, "inverse": -1.0, "random": -0.5} | (gains or {})
    numbers = {"none": 0.0, "b = 0.5": 0.5, "b = 1": 1.0, "inverse": -1.0, "random": np.nan}
    rows = []
    for place, (race, model) in enumerate(itertools.product(races, models)):
        for seed in range(seeds):
            rng = np.random.default_rng([place, seed, 13])
            base = 97 + 5 * rng.normal()
            for variant, exponent in numbers.items():
                points = base + gains.get(variant, 0.0) + noise * rng.normal()
                rows.append(
                    {
                        "race": race,
                        "model": model,
                        "seed": seed,
                        "variant": variant,
                        "exponent": exponent,
                        "n_scaled": scaled if variant != "none" else 0,
                        "test_accuracy": points / 100,
                        "diverged": False,
                        "n_test": n_test,
                    }
                )
    return pd.DataFrame(rows)


def make_race_times(race, seconds):
    """Seconds of every epoch around those of its method."""
    keys = race[["race", "method", "seed", "epoch"]]
    scatter = np.exp(0.05 * np.random.default_rng(len(race)).normal(size=len(race)))
    return keys.assign(seconds=keys["method"].map(seconds) * scatter)


def make_tuning_times(tuning, race, seconds):
    """Seconds of a candidate: those of its method's epoch, times the epochs of the race."""
    epochs = tuning["race"].map(race.groupby("race")["epoch"].max())
    keys = tuning[["race", "method", "learning_rate", "weight_decay"]]
    return keys.assign(seconds=keys["method"].map(seconds) * epochs)


def update_spectrum(method, sigma, generator):
    """T(sigma / sigma_1) of a method up to its scale, and the share on the diagonal."""
    flat = {
        "sgd": (sigma, 1.0),
        "sgd_by_damping": (10 * sigma, 1.0),
        "muon": (generator.uniform(0.7, 1.15, sigma.size), 0.999),
        "soap": (0.6 + 0.3 * generator.standard_normal(sigma.size), 0.31),
        "adamw": (sigma**0.5 * (0.7 + generator.standard_normal(sigma.size)), 0.087),
    }
    if method in flat:
        return flat[method]
    alpha = {"spectral_newton_1": 1.0, "spectral_newton_2": 2.0}.get(method, 1.7)
    return 6.4 * sigma / (sigma**alpha + 0.1), 1.0


def make_responses(methods, sizes):
    """Spectra of the updates in layers of so many directions."""
    rows = []
    for layer, size in sizes.items():
        k = np.arange(1, size + 1)
        for method in methods:
            generator = np.random.default_rng([size, *method.encode()])
            response, share = update_spectrum(method, k**-1.1, generator)
            table = pd.DataFrame({"race": "images", "method": method, "layer": layer, "k": k})
            rows.append(
                table.assign(sigma=0.032 * k**-1.1, response=response, diagonal_share=share)
            )
    return pd.concat(rows, ignore_index=True)
