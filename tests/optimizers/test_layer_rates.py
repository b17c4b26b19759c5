"""The control of learning rates per layer: its factors, its table, and how it is paired."""

import numpy as np
import pandas as pd
import pytest

from spectral_laws import rng
from spectral_laws.errors import DataError
from spectral_laws.optimizers.layer_rates import rate_variants, scaled_rates, train_layer_rates
from spectral_laws.optimizers.race import train_method
from spectral_laws.optimizers.runs import Choice
from spectral_laws.settings.optimizers import RateVariants

VARIANTS = RateVariants(method="plain", exponents=(0.5, 1.0, -1.0), random=True)
NAMES = ["none", "b = 0.5", "b = 1", "inverse", "random"]
TUNED = pd.DataFrame(
    [("toy", "plain", 0.05, 0.001, True)],
    columns=["race", "method", "learning_rate", "weight_decay", "chosen"],
)
RESULTS = ["test_loss", "test_accuracy", "diverged"]


@pytest.fixture
def history(make_task, make_method):
    """Table of the race's own trainings."""
    return train_method(
        make_task(), make_method("sgd"), TUNED, None, name="plain", replicates=[0, 1]
    ).table


def test_factors_are_powers_of_s_over_its_mean():
    rates = scaled_rates({"a": 1.0, "b": 3.0}, 0.5)
    assert rates == pytest.approx({"a": 0.5**0.5, "b": 1.5**0.5})
    assert scaled_rates({"a": 1.0, "b": 3.0}, -1.0) == pytest.approx({"a": 2.0, "b": 2 / 3})
    assert scaled_rates({"a": 0.7}, 2.0) == {"a": 1.0}
    assert scaled_rates({}, 1.0) == {}


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_random_control_moves_every_s_to_another_layer(n):
    decays = {f"layer{i}": i + 1.0 for i in range(n)}
    straight = scaled_rates(decays, 1.0)
    seen = set()
    for seed in range(40):
        variants = rate_variants(decays, VARIANTS, rng.generator(seed, "test"))
        names_and_exponents = [variant[:2] for variant in variants]
        assert names_and_exponents == [*zip(NAMES, [0.0, 0.5, 1.0, -1.0, None], strict=True)]
        assert variants[0][2] == {}
        assert variants[2][2] == straight
        control = variants[-1][2]
        assert [*control] == [*decays]
        assert sorted(control.values()) == pytest.approx(sorted(straight.values()))
        if n > 1:
            assert all(control[layer] != straight[layer] for layer in decays)
        seen.add(tuple(control.values()))
    assert len(seen) == 1 if n < 3 else len(seen) > 10


def test_variants_can_do_without_the_control():
    settings = RateVariants(method="plain", exponents=(2.0,), random=False)
    variants = rate_variants({"a": 1.0, "b": 3.0}, settings, rng.generator(0, "test"))
    assert [variant[0] for variant in variants] == ["none", "b = 2"]


def test_variants_are_paired_and_the_first_is_the_race_itself(
    make_task, make_method, history, exponents, tmp_path
):
    task = make_task(scratch=tmp_path)
    trained = train_layer_rates(
        task, make_method("sgd"), history, exponents, VARIANTS, replicates=[0, 1]
    )
    table = trained.table
    assert list(table) == [
        "race", "model", "seed", "variant", "exponent", "n_scaled", *RESULTS, "n_test"
    ]  # fmt: skip
    assert table["variant"].tolist() == NAMES * 2
    assert table["seed"].tolist() == [0] * 5 + [1] * 5
    assert table["exponent"].isna().tolist() == ([False] * 4 + [True]) * 2
    assert table["n_scaled"].tolist() == [0, 3, 3, 3, 3] * 2
    assert set(table["race"] + table["model"]) == {"toysmall"}
    assert set(table["n_test"]) == {20}
    assert len(set(table["test_loss"])) == 10
    assert not table["diverged"].any()
    last = history[history["epoch"] == 2].set_index("seed")
    ordinary = table[table["variant"] == "none"].set_index("seed")
    pd.testing.assert_frame_equal(ordinary[RESULTS], last[RESULTS])
    # The factors by hand: the means of s are 1, 1.5 and 2, their mean is 1.5.
    rates = {"layers.0": 1 / 1.5, "layers.1": 1.0, "head": 2 / 1.5}
    choice = Choice(make_method("sgd"), 0.05, 0.001, layer_rates=rates)
    by_hand = make_task().run(choice, "race", 1, validate=False).iloc[-1]
    ours = table[(table["seed"] == 1) & (table["variant"] == "b = 1")].iloc[0]
    assert [ours[name] for name in RESULTS] == [by_hand[name] for name in RESULTS]
    assert set(tmp_path.iterdir()) == set(trained.kept)
    assert len(trained.kept) == 8
    trained.discard()
    assert [*tmp_path.iterdir()] == []


def test_with_one_scaled_layer_all_variants_are_the_race_itself(
    make_task, make_method, history, exponents
):
    only = exponents[exponents["layer"] == "head"]
    table = train_layer_rates(
        make_task(), make_method("sgd"), history, only, VARIANTS, replicates=[0]
    ).table
    assert table["n_scaled"].tolist() == [0, 1, 1, 1, 1]
    assert len(set(table["test_loss"])) == 1


@pytest.mark.parametrize("s", [-1.0, 0.0])
def test_without_a_positive_s_nothing_is_scaled(make_task, make_method, history, exponents, s):
    table = train_layer_rates(
        make_task(), make_method("sgd"), history, exponents.assign(s=s), VARIANTS, replicates=[0]
    ).table
    assert set(table["n_scaled"]) == {0}
    assert len(set(table["test_loss"])) == 1


@pytest.mark.parametrize("s", [-0.5, 0.0])
def test_a_layer_whose_s_is_not_positive_keeps_its_rate(
    make_task, make_method, history, exponents, s
):
    values = exponents["layer"].map({"layers.0": 1.0, "layers.1": s, "head": 3.0})
    table = train_layer_rates(
        make_task(), make_method("sgd"), history, exponents.assign(s=values), VARIANTS,
        replicates=[0],
    ).table  # fmt: skip
    assert table["n_scaled"].tolist() == [0, 2, 2, 2, 2]
    # The mean of s is over the two layers: 2.
    choice = Choice(make_method("sgd"), 0.05, 0.001, layer_rates={"layers.0": 0.5, "head": 1.5})
    by_hand = make_task().run(choice, "race", 0, validate=False).iloc[-1]
    ours = table[table["variant"] == "b = 1"].iloc[0]
    assert [ours[name] for name in RESULTS] == [by_hand[name] for name in RESULTS]


def test_a_variant_that_diverges_is_reported(make_task, make_method, history, exponents):
    rates = exponents["layer"].map({"layers.0": 1e-8, "layers.1": 1.0, "head": 1.0})
    settings = RateVariants(method="plain", exponents=(0.5, -4.0), random=False)
    table = train_layer_rates(
        make_task(), make_method("sgd"), history, exponents.assign(s=rates), settings,
        replicates=[0],
    ).table  # fmt: skip
    assert table["diverged"].tolist() == [False, False, True]
    assert table["test_loss"].isna().tolist() == [False, False, True]
    assert table["test_accuracy"].notna().all()


def test_tables_that_lack_something_are_named(make_task, make_method, history, exponents):
    def train(past=history, measured=exponents, replicates=(0,), **changes):
        return train_layer_rates(
            make_task(**changes), make_method("sgd"), past, measured, VARIANTS,
            replicates=replicates,
        )  # fmt: skip

    with pytest.raises(DataError, match="no training 2 of 'plain' in race 'toy'"):
        train(replicates=[2])
    with pytest.raises(DataError, match="no training 0 of 'plain' in race 'toy'"):
        train(past=history.assign(method="other"))
    with pytest.raises(DataError, match="no training 0 of 'plain' in race 'far'"):
        train(name="far")
    with pytest.raises(DataError, match="history table: no column race, epoch"):
        train(past=history.drop(columns=["race", "epoch"]))
    with pytest.raises(DataError, match="history table: no column weight_decay, test_loss"):
        train(past=history.drop(columns=["weight_decay", "test_loss"]))
    with pytest.raises(DataError, match="no fitted layer of a trained model 'small'"):
        train(measured=exponents.assign(status="no fit"))
    assert np.isfinite(train().table["test_loss"]).all()
