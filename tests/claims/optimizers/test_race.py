"""B14: gains over AdamW, paired by seed and averaged over races."""

import itertools

import numpy as np
import pandas as pd
import pytest

from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.optimizers.evidence import OPTIMIZERS
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.config import load_config
from spectral_laws.errors import NoFitError

B14 = OPTIMIZERS["B14"]
TWO = {"images": "classification", "more": "classification"}


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
    result = B14.judged(tables, resampling)
    # Pairs share the 3 points of noise that seeds differ by.
    assert result.value == pytest.approx(gain, abs=0.07)
    assert result.ci_low < gain < result.ci_high < result.ci_low + 0.2
    assert verdict("B14", result) == expected
    assert result.n == 40


def test_a_mean_gain_with_an_interval_over_zero_is_not_reproduced(world, resampling, verdict):
    race = world["race"](gains={"spectral_newton_2": 0.0}, noise=0.0, seeds=3)
    mine = race["method"].eq("spectral_newton_2")
    race.loc[mine, "test_accuracy"] += race["seed"].map({0: 0.06, 1: 0.01, 2: -0.01})
    result = B14.judged(tables_of(world, race), resampling)
    assert result.value == pytest.approx(2.0)
    assert result.ci_low < 0
    assert verdict("B14", result) == "not reproduced"


def test_the_value_is_the_mean_over_trainings_then_over_races(world, resampling):
    race = world["race"](tasks=TWO, seeds=6, noise=1.0)
    race = race[(race["race"] == "images") | (race["seed"] < 3)]
    result = B14.judged(tables_of(world, race.sample(frac=1, random_state=0)), resampling)
    last = (
        race[race["epoch"] == 3].set_index(["race", "method", "seed"])["test_accuracy"].sort_index()
    )
    means = [
        np.mean(
            [
                100 * (last[name, "spectral_newton_2", seed] - last[name, "adamw", seed])
                for seed in range(seeds)
            ]
        )
        for name, seeds in (("images", 6), ("more", 3))
    ]
    assert result.value == pytest.approx(np.mean(means), abs=1e-12)
    assert result.n == 9
    assert result.reason.startswith(
        "spectral_newton_2 minus adamw, paired by seed; images: resnet18, "
    )
    for name, seeds in (("images", 6), ("more", 3)):
        level = f"{100 * last[name, 'adamw'].mean():.2f} %"
        about = "resnet18, 500 training samples, 60 steps"
        assert f"; {name}: {about}; {seeds} seeds, adamw {level}, gain " in result.reason
    assert f", gain {means[1]:.3g} points, one test sample 0.25 points" in result.reason


def test_trainings_are_resampled_within_each_race(world, resampling):
    # Races with gains of 10 and 0 and no noise: drawing races too would give an interval.
    race = world["race"](tasks=TWO, noise=0.0)
    more = (race["race"] == "more") & (race["method"] == "spectral_newton_2")
    race.loc[more, "test_accuracy"] += 0.1
    result = B14.judged(tables_of(world, race), resampling)
    assert result.value == pytest.approx((2 + 12) / 2)
    assert result.ci_high - result.ci_low < 1e-9


def test_beside_it_stand_the_other_methods(world):
    tables = tables_of(world, seeds=30)
    table = evaluate_claims(tables, confidence=0.95, resamples=50, seed=1).set_index("id")
    parts = [part.split(": ") for part in table.loc["B14", "beside"].split("; ")]
    values = {name: float(text.split(" ")[0]) for name, text in parts}
    # The claim speaks of Spectral Newton over AdamW; no other difference has a verdict.
    verdicts = {name: text.split("]")[1] for name, text in parts if not text.endswith("]")}
    assert verdicts == {
        "alpha = 1": ", direction reproduced",
        "measured alpha of each layer (its measurement is in no budget)": ", reproduced",
    }
    expected = {
        "alpha = 1": 1.0,
        "measured alpha of each layer (its measurement is in no budget)": 1.5,
        "Muon minus AdamW": 1.8,
        "SOAP minus AdamW": 0.6,
        "SGD minus AdamW": -0.5,
        "SGD without momentum minus AdamW": -4.0,
        "alpha = 2 minus Muon": 0.2,
        "alpha = 2 minus SGD": 2.5,
    }
    assert values == pytest.approx(expected, abs=0.08)


def test_a_method_that_did_not_race_is_said(world, resampling):
    race = world["race"]()
    tables = tables_of(world, race[race["method"] != "spectral_newton_1"])
    beside = B14.beside["alpha = 1"]
    with pytest.raises(NoFitError, match="no classification race has trainings of spectral_newt"):
        beside(tables, resampling)
    assert B14.judged(tables, resampling).n == 5


def test_language_races_are_told_but_not_judged(world, resampling):
    both = world["race"](noise=0.0)
    result = B14.judged(tables_of(world, both), resampling)
    alone = B14.judged(tables_of(world, both[both["race"] == "images"]), resampling)
    assert result.value == alone.value
    assert result.n == alone.n
    told = "; not judged, in nats per token: loss of adamw minus that of spectral_newton_2 (text, "
    assert result.reason == f"{alone.reason}{told}5 pairs) 0.1 [0.1, 0.1]"
    lost = both["race"].eq("text") & both["seed"].eq(2) & both["method"].eq("adamw")
    both.loc[lost, ["test_loss", "diverged"]] = [np.nan, True]
    result = B14.judged(tables_of(world, both), resampling)
    assert result.reason.endswith(
        "(text, 4 pairs, 1 with a diverged training left out) 0.1 [0.1, 0.1]"
    )
    with pytest.raises(NoFitError, match="no classification race"):
        B14.judged(tables_of(world, both[both["race"] == "text"]), resampling)


def test_a_diverged_training_counts_with_its_accuracy_and_is_told(world, resampling, verdict):
    race = world["race"](noise=0.0)
    assert "diverged" not in B14.judged(tables_of(world, race), resampling).reason
    mine = race["race"].eq("images") & race["seed"].eq(1) & race["epoch"].eq(3)
    rows = mine & race["method"].eq("spectral_newton_2")
    race.loc[rows, ["test_loss", "test_accuracy", "diverged"]] = [np.nan, 0.1, True]
    adamw = race[mine & race["method"].eq("adamw")]["test_accuracy"].item()
    result = B14.judged(tables_of(world, race), resampling)
    assert result.value == pytest.approx((4 * 2 + 10 - 100 * adamw) / 5)
    assert "points, 1 of spectral_newton_2 diverged but counted; " in result.reason
    assert verdict("B14", result) == "not reproduced"


@pytest.mark.parametrize(
    ("chosen", "rates", "text"),
    [
        ({}, (0.001, 0.003, 0.01), "; learning rates inside their grids"),
        (
            {"spectral_newton_2": 0.01, "muon": 0.001},
            (0.001, 0.003, 0.01),
            "; at the edge of its grid: spectral_newton_2 in images (0.01, the highest)",
        ),
        (
            {"adamw": 0.001},
            (0.01, 0.003, 0.001),
            "; at the edge of its grid: adamw in images (0.001, the lowest)",
        ),
        (
            {},
            (0.003,),
            "; at the edge of its grid: adamw in images (0.003, the only one)",
        ),
    ],
)
def test_a_learning_rate_at_the_edge_of_its_grid_is_told(world, resampling, chosen, rates, text):
    race = world["race"](tasks={"images": "classification"})
    tuning = world["tuning"](race, chosen=chosen, rates=rates)
    judged = B14.judged(ClaimTables(race=race, tuning=tuning), resampling)
    if len(rates) == 1:
        text = text.replace("adamw", "spectral_newton_2 in images (0.003, the only one), adamw")
    told = "trainings each, a choice that no interval holds"
    assert judged.reason.endswith(f"; tuned on {2 * len(rates)} {told}{text}")


def test_the_budget_is_in_trainings(world, resampling):
    race = world["race"](tasks=TWO)
    tuning = world["tuning"](race, trainings=2)
    judged = B14.judged(ClaimTables(race=race, tuning=tuning), resampling)
    assert "; tuned on 12 trainings each, a choice that no interval holds; " in judged.reason
    tuning.loc[tuning["race"] == "more", "trainings"] = 1
    judged = B14.judged(ClaimTables(race=race, tuning=tuning), resampling)
    assert "; tuned on 6 or 12 trainings each, " in judged.reason


def test_the_network_and_the_length_of_each_race_are_told(world, resampling):
    race = world["race"](tasks=TWO)
    more = race["race"] == "more"
    race.loc[more, ["model", "train_size", "steps"]] = ["mlp", 320, 7]
    reason = B14.judged(tables_of(world, race), resampling).reason
    assert "; images: resnet18, 500 training samples, 60 steps; 5 seeds, adamw " in reason
    assert "; more: mlp, 320 training samples, 7 steps; 5 seeds, adamw " in reason


def test_only_spectral_newton_over_adamw_is_judged(world, resampling):
    tables = tables_of(world)
    assert B14.judged(tables, resampling).judged
    judged = {name for name, part in B14.beside.items() if part(tables, resampling).judged}
    assert judged == {
        "alpha = 1",
        "measured alpha of each layer (its measurement is in no budget)",
    }


def lacking(race: pd.DataFrame, case: str) -> pd.DataFrame:
    mine, seed = race["method"].eq("spectral_newton_2"), race["seed"]
    if case == "a partner":
        return race[~(mine & seed.eq(0))]
    if case == "the last epoch":
        return race[~(mine & seed.eq(0) & race["epoch"].eq(3))]
    return race[~(mine & seed.ge(2) & race["race"].eq("more"))]


@pytest.mark.parametrize("case", ["a partner", "the last epoch"])
def test_a_training_without_its_pair_does_not_count(world, resampling, case):
    race = world["race"](tasks={"images": "classification"}, noise=0.0)
    result = B14.judged(tables_of(world, lacking(race, case)), resampling)
    assert result.n == 4
    assert result.value == pytest.approx(2.0)
    unpaired = {"a partner": 1, "the last epoch": 2}[case]
    assert f"paired by seed, {unpaired} unpaired left out; images: resnet18, 500 " in result.reason
    assert " steps; 4 seeds, " in result.reason


def test_each_race_needs_enough_pairs(world, resampling):
    race = lacking(world["race"](tasks=TWO), "pairs")
    with pytest.raises(NoFitError, match="2 independent"):
        B14.judged(tables_of(world, race), resampling)


@pytest.mark.parametrize("count", [0, 2])
def test_a_method_without_one_choice_is_said(world, resampling, count):
    race = world["race"]()
    tuning = world["tuning"](race)
    place = tuning["race"].eq("images") & tuning["method"].eq("adamw")
    tuning.loc[tuning.index[place][:count], "chosen"] = True
    tuning.loc[tuning.index[place][count:], "chosen"] = False
    with pytest.raises(NoFitError, match=f"{count} choices of adamw in race images, not one"):
        B14.judged(ClaimTables(race=race, tuning=tuning), resampling)


def test_two_rows_of_one_training_are_an_error(world, resampling):
    race = world["race"]()
    tables = tables_of(world, pd.concat([race, race], ignore_index=True))
    with pytest.raises(pd.errors.MergeError):
        B14.judged(tables, resampling)


def test_every_name_of_the_laptop_race_is_used(root):
    """Beside B14 stands each method of the configuration; a renamed one would go unnoticed."""
    methods = set(load_config(root / "config.yaml").optimizers.methods)
    parts = [B14.judged, *B14.beside.values()]
    named = itertools.chain.from_iterable(part.keywords.values() for part in parts)
    assert set(named) == methods
