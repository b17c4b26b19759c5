"""B15: gains by learning rates per layer, paired by training."""

import itertools

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.optimizers.evidence import OPTIMIZERS
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError

B15 = OPTIMIZERS["B15"]
BEST, INVERSE, RANDOM = B15.beside.values()


@pytest.mark.parametrize(
    ("gains", "value", "expected"),
    [
        ({"b = 0.5": 0.1, "b = 1": -0.2}, -0.05, "reproduced"),
        ({"b = 0.5": 0.6, "b = 1": 0.1}, 0.35, "direction reproduced"),
        ({"b = 0.5": 3.0, "b = 1": 0.1}, 1.55, "not reproduced"),
        ({"b = 0.5": -9.0, "b = 1": -3.0}, -6.0, "reproduced"),
    ],
)
def test_the_mean_over_positive_exponents_is_judged(
    world, resampling, verdict, gains, value, expected
):
    table = world["layer_rates"](gains=gains | {"inverse": 7.0, "random": 5.0}, seeds=40)
    result = B15.judged(ClaimTables(layer_rates=table), resampling)
    # Pairs share the 5 points of noise that networks differ by.
    assert result.value == pytest.approx(value, abs=0.07)
    assert result.ci_low < value < result.ci_high < result.ci_low + 0.2
    assert verdict("B15", result) == expected
    assert result.n == 40
    assert result.scope == "b = 0.5, b = 1"
    assert "one test sample 0.25 points" in result.reason


def test_the_value_is_the_mean_of_paired_differences(world, resampling):
    table = world["layer_rates"](models=("mlp", "resnet18"), races=("images", "more"), seeds=3)
    shuffled = table.sample(frac=1, random_state=0)
    result = B15.judged(ClaimTables(layer_rates=shuffled), resampling)
    accuracy = {(r.race, r.model, r.seed, r.variant): r.test_accuracy for r in table.itertuples()}
    by_hand = [
        100 * (accuracy[*place, b] - accuracy[*place, "none"])
        for place in itertools.product(("images", "more"), ("mlp", "resnet18"), range(3))
        for b in ("b = 0.5", "b = 1")
    ]
    assert result.value == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert result.n == 12
    networks = "mlp in images, resnet18 in images, mlp in more, resnet18 in more"
    assert f"12 trainings ({networks}) with and without; " in result.reason


def test_a_diverged_training_counts_with_its_accuracy_and_is_told(world, resampling):
    table = world["layer_rates"](gains={"b = 0.5": 0.0, "b = 1": 0.0}, noise=0.0)
    assert "diverged" not in B15.judged(ClaimTables(layer_rates=table), resampling).reason
    for variant, seed in (("b = 1", 1), ("inverse", 0), ("inverse", 2)):
        rows = (table["variant"] == variant) & (table["seed"] == seed)
        table.loc[rows, ["test_accuracy", "diverged"]] = [0.1, True]
    result = B15.judged(ClaimTables(layer_rates=table), resampling)
    without = table[(table["variant"] == "none") & (table["seed"] == 1)]["test_accuracy"].item()
    assert result.value == pytest.approx(100 * (0.1 - without) / 2 / 5)
    assert result.reason.endswith("; diverged but counted: b = 1 1, inverse 2")


def test_each_race_needs_enough_trainings(world, resampling):
    table = world["layer_rates"](races=("images", "more"))
    tables = ClaimTables(layer_rates=table[(table["race"] == "images") | (table["seed"] < 2)])
    with pytest.raises(NoFitError, match="2 independent"):
        B15.judged(tables, resampling)


def test_beside_it_stand_the_best_exponent_and_the_controls(world, resampling):
    gains = {"b = 0.5": -0.4, "b = 1": 0.3, "inverse": -2.0, "random": 0.8}
    tables = ClaimTables(layer_rates=world["layer_rates"](gains=gains, seeds=30))
    best, inverse, random = (measure(tables, resampling) for measure in (BEST, INVERSE, RANDOM))
    assert best.value == pytest.approx(0.3, abs=0.07)
    assert best.scope == "b = 1"
    assert inverse.value == pytest.approx(-2.0, abs=0.07)
    assert random.value == pytest.approx(0.8, abs=0.07)


def test_the_gain_of_every_variant_is_told(world, resampling):
    gains = {"b = 0.5": -0.4, "b = 1": 0.3, "inverse": -2.0, "random": 0.8}
    table = world["layer_rates"](gains=gains, noise=0.0)
    told = "b = 0.5: -0.4, b = 1: 0.3, inverse: -2, random: 0.8"
    expected = f"mean gain at {told} points, at the rate tuned without, which favours no gain; "
    for measure in (B15.judged, BEST, INVERSE, RANDOM):
        assert measure(ClaimTables(layer_rates=table), resampling).reason.startswith(expected)
    some = ClaimTables(layer_rates=table[table["variant"].isin(["none", "b = 1"])])
    reason = B15.judged(some, resampling).reason
    assert reason.startswith("mean gain at b = 1: 0.3 points, at the rate tuned without")


def test_the_best_of_equal_exponents_is_chosen_again_in_every_resample(world, resampling):
    # Two exponents without gain and with strong noise: the maximum lies above either mean.
    table = world["layer_rates"](gains={"b = 0.5": 0.0, "b = 1": 0.0}, noise=1.0, seeds=10)
    tables = ClaimTables(layer_rates=table)
    best, mean = BEST(tables, resampling), B15.judged(tables, resampling)
    assert best.value > mean.value
    assert best.ci_low > mean.ci_low


def test_trainings_without_changed_rates_do_not_count(world, resampling):
    table = world["layer_rates"](seeds=5)
    none = table["seed"] == 4
    table.loc[none, "n_scaled"] = 1
    table.loc[none & (table["variant"] == "b = 1"), "test_accuracy"] = 0.0
    result = B15.judged(ClaimTables(layer_rates=table), resampling)
    assert result.n == 4
    assert result.value > -1
    assert "4 trainings (mlp in images) with and without, 1 without" in result.reason


def lacking(table: pd.DataFrame, case: str) -> pd.DataFrame:
    if case == "baseline":
        return table[table["variant"] != "none"]
    if case == "positive":
        return table[~(table["exponent"] > 0)]
    if case == "scaled":
        return table.assign(n_scaled=1)
    return table[table["seed"] < 2]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("baseline", "no training without layer rates"),
        ("positive", "no training with a positive exponent"),
        ("scaled", "none of 5 trainings has 2 layers"),
        ("seeds", "2"),
    ],
)
def test_what_is_lacking_is_said(world, resampling, case, message):
    tables = ClaimTables(layer_rates=lacking(world["layer_rates"](), case))
    with pytest.raises(NoFitError, match=message):
        B15.judged(tables, resampling)


def test_a_control_that_was_not_trained_is_said(world, resampling):
    table = world["layer_rates"]()
    tables = ClaimTables(layer_rates=table[table["variant"] != "random"])
    with pytest.raises(NoFitError, match="no training with layer rates 'random'"):
        RANDOM(tables, resampling)
