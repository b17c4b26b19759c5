"""B14, gains over AdamW paired by seed; B15, gains by learning rates per layer, by training."""

import itertools

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.optimizers import OPTIMIZERS
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.config import load_config
from spectral_laws.errors import NoFitError

B14, B15 = OPTIMIZERS["B14"], OPTIMIZERS["B15"]
BEST, INVERSE, RANDOM = B15.sensitivity.values()
TWO = {"images": "classification", "more": "classification"}


def values(measurement):
    """What stands beside a measurement."""
    return {name: one.value for name, one in measurement.beside.items()}


def tables_of(world, race=None, **settings):
    race = world["race"](**settings) if race is None else race
    return ClaimTables(race=race, tuning=world["tuning"](race))


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (2.0, "reproduced"),
        (0.6, "direction reproduced"),
        (5.0, "direction reproduced"),
        (-2.0, "not reproduced"),
    ],
)
def test_the_gain_of_alpha_two_is_judged(world, resampling, verdict, gain, expected):
    tables = tables_of(world, gains={"spectral_newton_2": gain, "muon": 9.0}, seeds=40)
    result = B14.primary(tables, resampling)
    # Pairs share the 3 points of noise that seeds differ by.
    assert result.value == pytest.approx(gain, abs=0.07)
    assert result.low < gain < result.high < result.low + 0.2
    assert verdict("B14", result) == expected
    assert (result.n_units, result.n_clusters) == (40, 40)


def test_a_mean_gain_with_an_interval_over_zero_is_inconclusive(world, resampling, verdict):
    race = world["race"](gains={"spectral_newton_2": 0.0}, noise=0.0, seeds=3)
    mine = race["method"].eq("spectral_newton_2")
    race.loc[mine, "test_accuracy"] += race["seed"].map({0: 0.06, 1: 0.01, 2: -0.01})
    result = B14.primary(tables_of(world, race), resampling)
    assert result.value == pytest.approx(2.0)
    assert result.low < 0
    assert verdict("B14", result) == "inconclusive"


def test_the_value_is_the_mean_over_trainings_then_over_races(world, resampling):
    race = world["race"](tasks=TWO, seeds=6, noise=1.0)
    race = race[(race["race"] == "images") | (race["seed"] < 3)]
    result = B14.primary(tables_of(world, race.sample(frac=1, random_state=0)), resampling)
    last = (
        race[race["epoch"] == 3].set_index(["race", "method", "seed"])["test_accuracy"].sort_index()
    )
    seeds = {"images": 6, "more": 3}
    means = {
        name: np.mean(
            [
                100 * (last[name, "spectral_newton_2", seed] - last[name, "adamw", seed])
                for seed in range(count)
            ]
        )
        for name, count in seeds.items()
    }
    assert result.value == pytest.approx(np.mean(list(means.values())), abs=1e-12)
    assert result.n_units == 9
    assert result.scope == "images, more"
    for name, count in seeds.items():
        gain, level = (result.beside[f"{name}, {of}"] for of in ("gain", "accuracy of adamw in %"))
        assert (gain.value, gain.n_clusters) == (pytest.approx(means[name]), count)
        assert level.value == pytest.approx(100 * last[name, "adamw"].mean())


def test_trainings_are_resampled_within_each_race(world, resampling):
    # Races with gains of 10 and 0 and no noise: drawing races too would give an interval.
    race = world["race"](tasks=TWO, noise=0.0)
    more = (race["race"] == "more") & (race["method"] == "spectral_newton_2")
    race.loc[more, "test_accuracy"] += 0.1
    result = B14.primary(tables_of(world, race), resampling)
    assert result.value == pytest.approx((2 + 12) / 2)
    assert result.high - result.low < 1e-9


def test_beside_it_stand_the_other_methods_and_spectral_newton_over_adamw_is_judged(
    world, resampling
):
    tables = tables_of(world, seeds=30)
    found = {name: measure(tables, resampling) for name, measure in B14.sensitivity.items()}
    measured_alpha = "measured alpha of each layer (its measurement is in no budget)"
    expected = {
        "alpha = 1": 1.0,
        measured_alpha: 1.5,
        "Muon minus AdamW": 1.8,
        "SOAP minus AdamW": 0.6,
        "SGD minus AdamW": -0.5,
        "SGD without momentum minus AdamW": -4.0,
        "alpha = 2 minus Muon": 0.2,
        "alpha = 2 minus SGD": 2.5,
    }
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected, abs=0.08)
    assert {name for name, one in found.items() if one.judged} == {"alpha = 1", measured_alpha}
    assert B14.primary(tables, resampling).judged


def test_a_method_that_did_not_race_is_said(world, resampling):
    race = world["race"]()
    tables = tables_of(world, race[race["method"] != "spectral_newton_1"])
    with pytest.raises(NoFitError, match="no classification race has trainings of spectral_newt"):
        B14.sensitivity["alpha = 1"](tables, resampling)
    assert B14.primary(tables, resampling).n_units == 5


def test_language_races_stand_beside(world, resampling):
    both = world["race"](noise=0.0)
    name = "loss of adamw minus that of spectral_newton_2, nats per token"
    result = B14.primary(tables_of(world, both), resampling)
    alone = B14.primary(tables_of(world, both[both["race"] == "images"]), resampling)
    assert (result.value, result.n_units) == (alone.value, alone.n_units)
    assert set(result.beside) - set(alone.beside) == {name}
    loss = result.beside[name]
    assert [loss.value, loss.low, loss.high] == pytest.approx([0.1] * 3)
    assert (loss.n_units, loss.scope, loss.judged) == (5, "text", False)
    lost = both["race"].eq("text") & both["seed"].eq(2) & both["method"].eq("adamw")
    both.loc[lost, ["test_loss", "diverged"]] = [np.nan, True]
    loss = B14.primary(tables_of(world, both), resampling).beside[name]
    assert (loss.value, loss.n_units) == (pytest.approx(0.1), 4)
    assert loss.scope == "text, 1 pairs with a diverged training left out"
    with pytest.raises(NoFitError, match="no classification race"):
        B14.primary(tables_of(world, both[both["race"] == "text"]), resampling)


def test_a_diverged_training_counts_with_its_accuracy(world, resampling):
    race = world["race"](noise=0.0)
    name = "images, diverged trainings of spectral_newton_2, counted"
    assert name not in B14.primary(tables_of(world, race), resampling).beside
    mine = race["race"].eq("images") & race["seed"].eq(1) & race["epoch"].eq(3)
    rows = mine & race["method"].eq("spectral_newton_2")
    race.loc[rows, ["test_loss", "test_accuracy", "diverged"]] = [np.nan, 0.1, True]
    adamw = race[mine & race["method"].eq("adamw")]["test_accuracy"].item()
    result = B14.primary(tables_of(world, race), resampling)
    assert result.value == pytest.approx((4 * 2 + 10 - 100 * adamw) / 5)
    assert values(result)[name] == 1


@pytest.mark.parametrize(
    ("chosen", "rates", "at_edge"),
    [
        ({}, (0.001, 0.003, 0.01), {}),
        (
            {"spectral_newton_2": 0.01, "muon": 0.001},
            (0.001, 0.003, 0.01),
            {"spectral_newton_2, the highest": 0.01},
        ),
        ({"adamw": 0.001}, (0.01, 0.003, 0.001), {"adamw, the lowest": 0.001}),
        ({}, (0.003,), {f"{m}, the only one": 0.003 for m in ("spectral_newton_2", "adamw")}),
    ],
)
def test_a_learning_rate_at_the_edge_of_its_grid_is_told(world, resampling, chosen, rates, at_edge):
    race = world["race"](tasks={"images": "classification"})
    tuning = world["tuning"](race, chosen=chosen, rates=rates)
    result = B14.primary(ClaimTables(race=race, tuning=tuning), resampling)
    told = {name: value for name, value in values(result).items() if "learning rate" in name}
    assert told == {
        f"images, learning rate of {which} of its grid": rate for which, rate in at_edge.items()
    }


def test_network_length_and_budget_of_each_race_are_told(world, resampling):
    race = world["race"](tasks=TWO)
    more = race["race"] == "more"
    race.loc[more, ["model", "train_size", "steps"]] = ["mlp", 320, 7]
    tuning = world["tuning"](race, trainings=2)
    tuning.loc[(tuning["race"] == "more") & (tuning["method"] == "adamw"), "trainings"] = 1
    beside = B14.primary(ClaimTables(race=race, tuning=tuning), resampling).beside
    assert {name: beside[f"{name}, gain"].scope for name in TWO} == {
        "images": "resnet18, 500 training samples, 60 steps, tuned on 12 trainings each",
        "more": "mlp, 320 training samples, 7 steps, tuned on 6 or 12 trainings each",
    }


def lacking(race: pd.DataFrame, case: str) -> pd.DataFrame:
    mine, seed = race["method"].eq("spectral_newton_2"), race["seed"]
    if case == "a partner":
        return race[~(mine & seed.eq(0))]
    if case == "the last epoch":
        return race[~(mine & seed.eq(0) & race["epoch"].eq(3))]
    return race[~(mine & seed.ge(2) & race["race"].eq("more"))]


@pytest.mark.parametrize(("case", "unpaired"), [("a partner", 1), ("the last epoch", 2)])
def test_a_training_without_its_pair_does_not_count(world, resampling, case, unpaired):
    race = world["race"](tasks={"images": "classification"}, noise=0.0)
    result = B14.primary(tables_of(world, lacking(race, case)), resampling)
    assert (result.value, result.n_units) == (pytest.approx(2.0), 4)
    assert result.scope == f"images, {unpaired} unpaired trainings left out"


def test_each_race_needs_enough_pairs(world, resampling):
    race = lacking(world["race"](tasks=TWO), "pairs")
    with pytest.raises(NoFitError, match="2 independent"):
        B14.primary(tables_of(world, race), resampling)


@pytest.mark.parametrize("count", [0, 2])
def test_a_method_without_one_choice_is_said(world, resampling, count):
    race = world["race"]()
    tuning = world["tuning"](race)
    place = tuning["race"].eq("images") & tuning["method"].eq("adamw")
    tuning.loc[tuning.index[place][:count], "chosen"] = True
    tuning.loc[tuning.index[place][count:], "chosen"] = False
    with pytest.raises(NoFitError, match=f"{count} choices of adamw in race images, not one"):
        B14.primary(ClaimTables(race=race, tuning=tuning), resampling)


def test_two_rows_of_one_training_are_an_error(world, resampling):
    race = world["race"]()
    tables = tables_of(world, pd.concat([race, race], ignore_index=True))
    with pytest.raises(pd.errors.MergeError):
        B14.primary(tables, resampling)


def test_every_name_of_the_laptop_race_is_used(root):
    """B14 measures each method of the configuration; a renamed one would go unnoticed."""
    methods = set(load_config(root / "config.yaml").optimizers.methods)
    parts = [B14.primary, *B14.sensitivity.values()]
    named = itertools.chain.from_iterable(part.keywords.values() for part in parts)
    assert set(named) == methods


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
    result = B15.primary(ClaimTables(layer_rates=table), resampling)
    # Pairs share the 5 points of noise that networks differ by.
    assert result.value == pytest.approx(value, abs=0.07)
    assert result.low < value < result.high < result.low + 0.2
    assert verdict("B15", result) == expected
    assert (result.n_units, result.n_clusters) == (40, 40)
    assert result.scope == "b = 0.5, b = 1, mlp in images"
    assert values(result) == pytest.approx(
        {f"gain at {name}": gain for name, gain in gains.items()}, abs=0.07
    )


def test_the_value_is_the_mean_of_paired_differences(world, resampling):
    table = world["layer_rates"](models=("mlp", "resnet18"), races=("images", "more"), seeds=3)
    shuffled = table.sample(frac=1, random_state=0)
    result = B15.primary(ClaimTables(layer_rates=shuffled), resampling)
    accuracy = {(r.race, r.model, r.seed, r.variant): r.test_accuracy for r in table.itertuples()}
    by_hand = [
        100 * (accuracy[*place, b] - accuracy[*place, "none"])
        for place in itertools.product(("images", "more"), ("mlp", "resnet18"), range(3))
        for b in ("b = 0.5", "b = 1")
    ]
    assert result.value == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert result.n_units == 12
    networks = "mlp in images, resnet18 in images, mlp in more, resnet18 in more"
    assert result.scope == f"b = 0.5, b = 1, {networks}"


def test_a_diverged_training_at_a_rate_counts_with_its_accuracy(world, resampling):
    table = world["layer_rates"](gains={"b = 0.5": 0.0, "b = 1": 0.0}, noise=0.0)
    for variant, seed in (("b = 1", 1), ("inverse", 0), ("inverse", 2)):
        rows = (table["variant"] == variant) & (table["seed"] == seed)
        table.loc[rows, ["test_accuracy", "diverged"]] = [0.1, True]
    result = B15.primary(ClaimTables(layer_rates=table), resampling)
    without = table[(table["variant"] == "none") & (table["seed"] == 1)]["test_accuracy"].item()
    assert result.value == pytest.approx(100 * (0.1 - without) / 2 / 5)
    told = {name: value for name, value in values(result).items() if "diverged" in name}
    assert told == {"diverged trainings at b = 1, counted": 1}
    inverse = INVERSE(ClaimTables(layer_rates=table), resampling)
    assert values(inverse) == {"diverged trainings at inverse, counted": 2}


def test_beside_the_rates_stand_the_best_exponent_and_other_factors(world, resampling):
    gains = {"b = 0.5": -0.4, "b = 1": 0.3, "inverse": -2.0, "random": 0.8}
    tables = ClaimTables(layer_rates=world["layer_rates"](gains=gains, seeds=30))
    best, inverse, random = (measure(tables, resampling) for measure in (BEST, INVERSE, RANDOM))
    assert best.value == pytest.approx(0.3, abs=0.07)
    assert best.scope == "b = 1, mlp in images"
    assert inverse.value == pytest.approx(-2.0, abs=0.07)
    assert random.value == pytest.approx(0.8, abs=0.07)
    assert values(random) == {}


def test_the_best_of_equal_exponents_is_chosen_again_in_every_resample(world, resampling):
    # Two exponents without gain and with strong noise: the maximum lies above either mean.
    table = world["layer_rates"](gains={"b = 0.5": 0.0, "b = 1": 0.0}, noise=1.0, seeds=10)
    tables = ClaimTables(layer_rates=table)
    best, mean = BEST(tables, resampling), B15.primary(tables, resampling)
    assert best.value > mean.value
    assert best.low > mean.low


def test_trainings_without_changed_rates_do_not_count(world, resampling):
    table = world["layer_rates"](seeds=5)
    none = table["seed"] == 4
    table.loc[none, "n_scaled"] = 1
    table.loc[none & (table["variant"] == "b = 1"), "test_accuracy"] = 0.0
    result = B15.primary(ClaimTables(layer_rates=table), resampling)
    assert result.n_units == 4
    assert result.value > -1
    assert result.scope.endswith("mlp in images, 1 trainings without changed rates left out")


def without(table: pd.DataFrame, case: str) -> pd.DataFrame:
    if case == "baseline":
        return table[table["variant"] != "none"]
    if case == "positive":
        return table[~(table["exponent"] > 0)]
    if case == "scaled":
        return table.assign(n_scaled=1)
    return table[(table["race"] == "images") | (table["seed"] < 2)]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("baseline", "no training without layer rates"),
        ("positive", "no training with a positive exponent"),
        ("scaled", "none of 10 trainings has 2 layers"),
        ("seeds of one race", "2 independent"),
    ],
)
def test_what_is_lacking_is_said(world, resampling, case, message):
    table = without(world["layer_rates"](races=("images", "more")), case)
    with pytest.raises(NoFitError, match=message):
        B15.primary(ClaimTables(layer_rates=table), resampling)


def test_a_variant_that_was_not_trained_is_said(world, resampling):
    table = world["layer_rates"]()
    tables = ClaimTables(layer_rates=table[table["variant"] != "random"])
    with pytest.raises(NoFitError, match="no training with layer rates 'random'"):
        RANDOM(tables, resampling)
