"""Tuning and trainings: what is chosen, what is paired, what is tested."""

import numpy as np
import pandas as pd
import pytest
import torch

from spectral_laws.curvature.training.checkpoints import model_arrays
from spectral_laws.errors import ConfigError, DataError, NumericalError
from spectral_laws.optimizers import race
from spectral_laws.optimizers.race import (
    Task,
    chosen_values,
    method_alphas,
    train_method,
    tune_method,
)

GRID = {"learning_rates": [0.1, 0.2, 0.3, 0.4], "weight_decays": [0.0, 0.5, 1.0]}


@pytest.fixture
def results(monkeypatch):
    """Let trainings end with given (loss, accuracy) per point of the grid; None has diverged.

    A list holds those of the replicates.
    """

    def give(ends):
        def run(self, choice, stream, replicate, *, validate):
            assert (stream, validate) == ("race tuning", True)
            end = ends[choice.learning_rate, choice.weight_decay]
            end = end[replicate] if isinstance(end, list) else end
            loss, accuracy = end or (np.nan, 0.9)
            row = {"epoch": 2, "train_loss": loss, "test_loss": loss, "test_accuracy": accuracy}
            first = row | {"epoch": 1, "test_accuracy": 1.0, "test_loss": 0.0}  # never the last
            rows = [x | {"diverged": end is None, "seconds": 1.0} for x in (first, row)]
            return pd.DataFrame(rows)

        monkeypatch.setattr(Task, "run", run)

    return give


@pytest.fixture
def spied(monkeypatch):
    """Trainings as they are, and a list of what each was given."""
    seen = []
    original = race.run_training

    def spy(model, samples, training, choice, **options):
        entry = {"weights": model_arrays(model), "samples": samples, "choice": choice} | options
        seen.append(entry)
        return original(model, samples, training, choice, **options)

    monkeypatch.setattr(race, "run_training", spy)
    return seen


ENDS = {
    (0.1, 0.0): (0.5, 0.7),
    (0.2, 0.0): (0.8, 0.8),
    (0.3, 0.0): None,
    (0.4, 0.0): (0.9, 0.8),
    (0.2, 0.5): (0.7, 0.8),
    (0.2, 1.0): (0.1, 0.6),
}
"""The best learning rate is 0.2, then the best weight decay 0.5."""


def chosen(table):
    rows = table[table["chosen"]]
    assert len(rows) == 1
    return tuple(rows[["learning_rate", "weight_decay"]].iloc[0])


def test_the_best_has_the_highest_accuracy_then_the_lowest_loss(results, make_task, make_method):
    results(ENDS)
    tuned = tune_method(make_task(), make_method("adamw", **GRID), None, name="mine")
    table = tuned.table
    assert list(table) == [
        "race", "method", "learning_rate", "weight_decay", "validation_loss",
        "validation_accuracy", "diverged", "trainings", "chosen",
    ]  # fmt: skip
    assert chosen(table) == (0.2, 0.5)
    assert set(table["race"] + table["method"]) == {"toymine"}
    grid = table[["learning_rate", "weight_decay"]].apply(tuple, axis=1).tolist()
    assert grid == [*ENDS]
    assert table["validation_loss"].isna().tolist() == [end is None for end in ENDS.values()]
    assert table["diverged"].tolist() == [end is None for end in ENDS.values()]
    # The last epoch counts, not the best.
    assert table["validation_accuracy"].tolist() == [0.7, 0.8, 0.9, 0.8, 0.8, 0.6]
    assert table["trainings"].tolist() == [1] * 6
    assert tuned.times["seconds"].tolist() == [2.0] * 6
    assert list(tuned.times) == ["race", "method", "learning_rate", "weight_decay", "seconds"]


def test_each_candidate_is_judged_by_the_mean_over_its_trainings(results, make_task, make_method):
    ends = {
        (0.1, 0.0): [(0.5, 0.875), (1.0, 0.125), (0.75, 0.125)],  # the best of the first trainings
        (0.2, 0.0): [(0.5, 0.25), (0.25, 0.5), (0.75, 0.75)],
        (0.3, 0.0): [(0.125, 0.75), None, (0.125, 0.75)],
        (0.4, 0.0): [(0.25, 0.75), (0.25, 0.25), (0.25, 0.125)],
        (0.2, 0.5): [(0.375, 0.5), (0.375, 0.5), (0.375, 0.5)],  # equal accuracy, lower loss
        (0.2, 1.0): [(0.125, 0.375), (0.125, 0.375), (0.125, 0.375)],
    }
    results(ends)
    method = make_method("adamw", **GRID)
    tuned = tune_method(make_task(), method, None, name="x", replicates=3)
    table = tuned.table
    assert chosen(table) == (0.2, 0.5)
    assert table["trainings"].tolist() == [3] * 6
    assert table["diverged"].tolist() == [False, False, True, False, False, False]
    assert table["validation_loss"].tolist() == pytest.approx(
        [0.75, 0.5, np.nan, 0.25, 0.375, 0.125], nan_ok=True
    )
    assert table["validation_accuracy"].tolist() == pytest.approx(
        [0.375, 0.5, (1.5 + 0.9) / 3, 0.375, 0.5, 0.375]
    )
    assert tuned.times["seconds"].tolist() == [6.0] * 6
    results(ends | {(0.1, 0.5): (0.5, 0.0), (0.1, 1.0): (0.5, 0.0)})
    assert chosen(tune_method(make_task(), method, None, name="x").table) == (0.1, 0.0)


def test_the_replicates_of_the_tuning_are_trained_and_kept(spied, make_task, make_method, tmp_path):
    method = make_method("sgd", learning_rates=[0.02, 0.05])
    task = make_task(scratch=tmp_path)
    tuned = tune_method(task, method, None, name="x", replicates=2)
    assert len(set(tuned.kept)) == len(spied) == 4
    assert [entry["choice"].learning_rate for entry in spied] == [0.02, 0.02, 0.05, 0.05]
    first, second, *others = (entry["seed"] for entry in spied)
    assert first != second
    assert others == [first, second]  # candidates are paired
    single = [tune_method(make_task(), method, None, name="x").table]
    again = make_task().run(spied[1]["choice"], "race tuning", 1, validate=True).iloc[-1]
    expected = (single[0]["validation_loss"].iloc[0] + again["test_loss"]) / 2
    assert tuned.table["validation_loss"].iloc[0] == pytest.approx(expected, rel=1e-12)
    tuned.discard()
    assert [*tmp_path.iterdir()] == []


def test_with_a_language_the_best_has_the_lowest_loss(
    results, make_task, make_method, language, gpt2
):
    results(ENDS | {(0.1, 0.5): (0.6, 0.9), (0.1, 1.0): (0.4, 0.1)})
    task = make_task(samples=language, model=gpt2)
    table = tune_method(task, make_method("adamw", **GRID), None, name="x").table
    assert chosen(table) == (0.1, 1.0)
    assert table["weight_decay"].tolist() == [0.0] * 4 + [0.5, 1.0]


def test_of_equals_the_first_is_chosen(results, make_task, make_method):
    results(dict.fromkeys([(r, d) for r in (0.1, 0.2, 0.3, 0.4) for d in (0, 0.5, 1)], (0.5, 0.5)))
    table = tune_method(make_task(), make_method("adamw", **GRID), None, name="x").table
    assert chosen(table) == (0.1, 0.0)


def test_when_everything_diverges_the_method_is_named(results, make_task, make_method):
    results(dict.fromkeys(ENDS))
    with pytest.raises(NumericalError, match="method mine: each of 4 candidates has a diverged"):
        tune_method(make_task(), make_method("adamw", **GRID), None, name="mine")


def test_a_learning_rate_that_diverges_is_not_chosen(make_task, make_method):
    method = make_method("sgd", learning_rates=[1e30, 0.05])
    table = tune_method(make_task(), method, None, name="x").table
    assert table["diverged"].tolist() == [True, False]
    assert chosen(table) == (0.05, 0.0)


def test_tuning_never_sees_the_test_samples_and_starts_all_methods_alike(
    spied, make_task, make_method, images
):
    for name in ("sgd", "muon"):
        tune_method(make_task(), make_method(name, **GRID), None, name=name)
    tune_method(make_task(seed=4), make_method("sgd"), None, name="other")
    assert len(spied) == 13  # 4 learning rates and 2 more weight decays, twice, and one
    for entry in spied:
        samples = entry["samples"]
        np.testing.assert_array_equal(samples.train_inputs, images.train_inputs[:33])
        np.testing.assert_array_equal(samples.test_inputs, images.train_inputs[33:45])
        np.testing.assert_array_equal(samples.test_targets, images.train_targets[33:45])
    for entry in spied[1:12]:
        assert entry["seed"] == spied[0]["seed"]
        for key, array in spied[0]["weights"].items():
            np.testing.assert_array_equal(entry["weights"][key], array)
    assert spied[12]["seed"] != spied[0]["seed"]
    assert not np.array_equal(
        spied[12]["weights"]["head.weight"], spied[0]["weights"]["head.weight"]
    )


def tuning(*rows):
    columns = ["race", "method", "learning_rate", "weight_decay", "chosen"]
    return pd.DataFrame(rows, columns=columns)


TUNED = tuning(
    ("toy", "x", 0.02, 0.0, False),
    ("toy", "x", 0.05, 0.1, True),
    ("toy", "y", 0.3, 0.0, True),
    ("far", "x", 0.7, 0.2, True),
)


def test_the_chosen_values_are_read_from_the_table():
    assert chosen_values(TUNED, "toy", "x") == (0.05, 0.1)
    assert chosen_values(TUNED, "toy", "y") == (0.3, 0.0)
    assert chosen_values(TUNED, "far", "x") == (0.7, 0.2)
    for race_, method, table, message in (
        ("toy", "z", TUNED, "0 choices of method 'z' in race 'toy', not one"),
        ("far", "y", TUNED, "0 choices of method 'y' in race 'far', not one"),
        ("toy", "x", TUNED.assign(chosen=False), "0 choices of method 'x' in race 'toy', not one"),
        ("toy", "x", TUNED.assign(chosen=True), "2 choices of method 'x' in race 'toy', not one"),
        ("toy", "x", TUNED.drop(columns=["weight_decay", "chosen"]), "column chosen, weight_decay"),
        ("toy", "x", TUNED.drop(columns="race"), "no column race"),
    ):
        with pytest.raises(DataError, match=f"tuning table: .*{message}"):
            chosen_values(table, race_, method)


def test_equal_seeds_pair_the_methods(spied, make_task, make_method, images):
    for name in ("sgd", "soap"):
        method = make_method(name)
        done = train_method(make_task(), method, TUNED, None, name="x", replicates=[0, 1])
    table = done.table
    assert list(table) == [
        "race", "task", "model", "train_size", "steps", "method", "seed", "epoch",
        "learning_rate", "weight_decay", "train_loss", "test_loss", "test_accuracy", "diverged",
        "n_test",
    ]  # fmt: skip
    rows = table[["race", "method", "seed", "epoch"]].values.tolist()
    assert rows == [["toy", "x", seed, epoch] for seed in (0, 1) for epoch in (1, 2)]
    assert table[["learning_rate", "weight_decay", "n_test"]].drop_duplicates().values.tolist() == [
        [0.05, 0.1, 20]
    ]
    about = table[["task", "model", "train_size", "steps"]].drop_duplicates().values.tolist()
    assert about == [["classification", "small", 33, 6]]  # two epochs of 12 + 12 + 9 samples
    assert list(done.times) == ["race", "method", "seed", "epoch", "seconds"]
    assert (done.times["seconds"] > 0).all()
    sgd, soap = spied[:2], spied[2:]
    for replicate in (0, 1):
        assert sgd[replicate]["seed"] == soap[replicate]["seed"]
        for key, array in sgd[replicate]["weights"].items():
            np.testing.assert_array_equal(soap[replicate]["weights"][key], array)
        np.testing.assert_array_equal(sgd[replicate]["samples"].test_inputs, images.test_inputs)
    assert sgd[0]["seed"] != sgd[1]["seed"]
    assert not np.array_equal(sgd[0]["weights"]["head.weight"], sgd[1]["weights"]["head.weight"])


def test_no_training_of_a_race_starts_where_the_tuning_did(spied, make_task, make_method):
    tune_method(make_task(), make_method("sgd"), None, name="x")
    train_method(make_task(), make_method("sgd"), TUNED, None, name="x", replicates=[0])
    first, second = (entry["weights"]["layers.0.weight"] for entry in spied)
    assert not np.array_equal(first, second)


def test_a_replicate_does_not_depend_on_the_others(make_task, make_method):
    def train(replicates):
        method = make_method("spectral_newton")
        return train_method(make_task(), method, TUNED, None, name="x", replicates=replicates).table

    both, alone = train([0, 1]), train([1])
    pd.testing.assert_frame_equal(both[both["seed"] == 1].reset_index(drop=True), alone)


def test_language_counts_positions(make_task, make_method, language, gpt2):
    task = make_task(samples=language, model=gpt2)
    table = train_method(task, make_method("muon"), TUNED, None, name="x", replicates=[0]).table
    assert set(table["n_test"]) == {16 * 8}
    assert set(table["task"]) == {"language_modelling"}


def test_measured_exponents_reach_the_trainings(spied, make_task, make_method, exponents):
    method = make_method("spectral_newton", alpha="measured")
    tune_method(make_task(), method, exponents, name="x")
    train_method(make_task(), method, TUNED, exponents, name="x", replicates=[0])
    assert [entry["choice"].alphas for entry in spied] == [
        {"layers.0": 1.0, "layers.1": 1.5, "head": 2.0}
    ] * 2
    for call in (
        lambda: tune_method(make_task(), method, None, name="x"),
        lambda: train_method(make_task(), method, TUNED, None, name="x", replicates=[0]),
    ):
        with pytest.raises(DataError, match="alpha is measured, and there is no table of exponent"):
            call()
    with pytest.raises(DataError, match="no fitted layer of a trained model 'large'"):
        tune_method(make_task(model_name="large"), method, exponents, name="x")


def test_a_negative_exponent_counts_as_zero(make_task, make_method, exponents):
    alphas = exponents["layer"].map({"layers.0": -0.4, "layers.1": 0.0, "head": 2.0})
    method = make_method("spectral_newton", alpha="measured")
    assert method_alphas(make_task(), method, exponents.assign(alpha=alphas)) == {
        "layers.0": 0.0,
        "layers.1": 0.0,
        "head": 2.0,
    }


def test_a_constant_exponent_needs_no_table(make_task, make_method, exponents):
    assert method_alphas(make_task(), make_method("spectral_newton"), exponents) is None
    assert method_alphas(make_task(), make_method("sgd"), None) is None


def test_finished_trainings_are_kept_until_they_are_discarded(make_task, make_method, tmp_path):
    task = make_task(scratch=tmp_path)
    tuned = tune_method(task, make_method("sgd", **GRID), None, name="x")
    assert len(set(tuned.kept)) == 6
    assert set(tmp_path.iterdir()) == set(tuned.kept)
    again = tune_method(make_task(scratch=tmp_path), make_method("sgd", **GRID), None, name="x")
    pd.testing.assert_frame_equal(again.table, tuned.table)
    pd.testing.assert_frame_equal(again.times, tuned.times)  # read, not measured again
    tuned.discard()
    assert [*tmp_path.iterdir()] == []
    tuned.discard()


def test_too_few_samples_are_named(make_task, make_method, make_training):
    task = make_task(training=make_training(train_size=40))
    for call in (
        lambda: tune_method(task, make_method("sgd"), None, name="x"),
        lambda: train_method(task, make_method("sgd"), TUNED, None, name="x", replicates=[0]),
    ):
        with pytest.raises(DataError, match="need 52 training samples, the data has 48"):
            call()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_an_absent_gpu_says_what_to_change(make_task, make_method):
    with pytest.raises(ConfigError, match="set `device: cpu`"):
        tune_method(make_task(device="cuda"), make_method("sgd"), None, name="x")
