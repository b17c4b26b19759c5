from dataclasses import replace

import numpy as np
import pytest

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.curvature.layers import measure_alpha
from spectral_laws.claims.curvature.selections import models_of, variant_layers
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


def tables_of(world, **settings):
    exponents = world["exponents"](**settings)
    return ClaimTables(exponents=exponents, experiments=world["experiments"](exponents))


@pytest.mark.parametrize(
    ("claim", "alpha", "expected"),
    [
        ("B1", {"conv": 2.05}, "reproduced"),
        ("B1", {"conv": 1.65}, "direction reproduced"),
        ("B1", {"conv": 1.0}, "not reproduced"),
        ("B2", {"attention_qkv": 1.1, "attention_output": 1.1}, "reproduced"),
        ("B2", dict.fromkeys(["attention_qkv", "mlp_down", "mlp_up"], 0.6), "direction reproduced"),
        ("B2", dict.fromkeys(["attention_output", "mlp_down", "mlp_up"], 2.0), "not reproduced"),
        ("B3", {"head": 3.0}, "reproduced"),
        ("B3", {"head": 6.0}, "direction reproduced"),
        ("B3", {"head": 1.4}, "not reproduced"),
    ],
)
def test_median_alpha_by_role(world, resampling, verdict, claim, alpha, expected):
    tables = tables_of(world, alpha=alpha, noise=0.02)
    result = CURVATURE[claim].primary(tables, resampling)
    roles = {"B1": ["conv", "pointwise_conv"], "B2": ["attention_qkv", "attention_output",
             "mlp_up", "mlp_down"], "B3": ["head"]}[claim]  # fmt: skip
    models = {"B1": ["resnet18", "vgg11"], "B2": ["gpt2"], "B3": list(world["main"])}[claim]
    rows = tables.exponents[tables.exponents["final"]]
    rows = rows[rows["role"].isin(roles) & rows["model"].isin(models)]
    assert result.value == np.median(rows["alpha"])
    assert result.n_units == len(rows) > 0
    assert result.low <= result.value <= result.high
    assert verdict(claim, result) == expected


def test_ablations_and_untrained_networks_do_not_count(world, resampling):
    shift = {"resnet_half": 5.0, "resnet_no_skip": 5.0, "resnet_no_norm": 5.0, "separable": 5.0}
    plain, shifted = (tables_of(world, shift=s) for s in ({}, shift))
    one, two = (CURVATURE["B1"].primary(tables, resampling) for tables in (plain, shifted))
    assert one.value == two.value
    assert (one.scope, one.n_units, one.n_clusters) == ("resnet18, vgg11", 44, 8)
    rows = plain.exponents[plain.exponents["final"]]
    rows = rows[rows["role"].isin(["conv", "pointwise_conv"])]
    for model in ("resnet18", "vgg11"):
        beside = one.beside[model]
        assert beside.value == rows.loc[rows["model"] == model, "alpha"].median()
        assert (beside.judged, beside.n_clusters) == (False, 4)
        assert beside.low <= beside.value <= beside.high


def test_beside_alpha_stand_other_layers_and_networks(world, resampling):
    alpha = {"depthwise_conv": 1.4, "pointwise_conv": 1.9, "mlp_up": 0.7, "mlp_down": 1.2}
    shift = {"resnet_no_norm": 0.3, "vit_tiny": -0.5, "mlp_100": -1.0}
    tables = tables_of(world, alpha=alpha, shift=shift, noise=0.01)

    def beside(claim, name):
        return CURVATURE[claim].sensitivity[name](tables, resampling)

    near = {"abs": 0.03}
    assert beside("B1", "depth-wise convolutions").value == pytest.approx(1.4, **near)
    assert beside("B1", "point-wise convolutions").value == pytest.approx(1.9, **near)
    assert beside("B1", "point-wise convolutions").scope == "separable"
    assert beside("B1", "point-wise convolutions").beside == {}
    assert beside("B1", "without batch normalisation").value == pytest.approx(2.3, **near)
    assert beside("B2", "attention alone").value == pytest.approx(1.0, **near)
    assert beside("B2", "down-projections").value == pytest.approx(1.2, **near)
    assert beside("B2", "up-projections").value == pytest.approx(0.7, **near)
    assert beside("B2", "vision transformer").value == pytest.approx(0.5, **near)
    assert beside("B3", "100 classes").value == pytest.approx(2.0, **near)
    assert beside("B3", "1000 classes").value == pytest.approx(3.0, **near)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.8, "reproduced"), (0.6, "direction reproduced"), (0.2, "not reproduced")],
)
def test_share_of_lognormal_layers(world, resampling, verdict, share, expected):
    tables = tables_of(world, lognormal=share, start_lognormal=0.0)
    result = CURVATURE["B12"].primary(tables, resampling)
    rows = tables.exponents[tables.exponents["final"]]
    rows = rows[rows["model"].isin(world["main"])]
    assert result.value == rows["rank_model"].eq("lognormal").mean()
    assert result.value == pytest.approx(share, abs=0.06)
    assert {name: part.value for name, part in result.beside.items()} == {
        name: rows["rank_model"].eq(name).mean() for name in ("exponential", "power_law")
    }
    assert verdict("B12", result) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1.0, "reproduced"), (0.7, "direction reproduced"), (0.3, "not reproduced")],
)
def test_share_within_the_bound(world, resampling, verdict, share, expected):
    result = CURVATURE["B13"].primary(tables_of(world, bounded=share), resampling)
    assert result.value == pytest.approx(share, abs=0.06)
    assert verdict("B13", result) == expected


def test_layers_without_a_finite_bound_do_not_count(world, resampling):
    tables = tables_of(world, bounded=0.5)
    exponents = tables.exponents
    main = exponents["final"] & exponents["model"].isin(world["main"])
    unbounded = exponents["participation_ratio"] > 2.5
    exponents.loc[unbounded, "participation_bound"] = np.nan
    result = CURVATURE["B13"].primary(tables, resampling)
    assert result.value == 1.0
    assert result.n_units == int((main & ~unbounded).sum())
    assert f"{int((main & unbounded).sum())} without a finite bound" in result.scope
    assert result.beside["median bound"].value == 2.5
    assert result.beside["median ratio"].value == pytest.approx(1.5, abs=0.01)
    exponents["participation_bound"] = np.nan
    with pytest.raises(NoFitError, match=r"none of 148 layers has a finite bound"):
        CURVATURE["B13"].primary(tables, resampling)


def test_layers_without_a_fit_are_counted_not_used(world, resampling):
    tables = tables_of(world)
    exponents = tables.exponents
    heads = exponents["final"] & (exponents["role"] == "head") & (exponents["model"] == "gpt2")
    exponents.loc[exponents.index[heads][:1], ["status", "alpha"]] = ["no fit", np.nan]
    result = CURVATURE["B3"].primary(tables, resampling)
    assert result.n_units == 5 * 4 - 1
    assert result.scope == "5 networks, 1 without a fit"
    exponents["alpha"] = np.nan
    with pytest.raises(NoFitError, match="none of 20 output layers has a fit"):
        CURVATURE["B3"].primary(tables, resampling)


def test_interval_needs_three_trainings_of_each_model(world, resampling):
    with pytest.raises(NoFitError, match="2 independent"):
        CURVATURE["B1"].primary(tables_of(world, seeds=2), resampling)
    tables = tables_of(world)
    few = tables.exponents[(tables.exponents["model"] != "vgg11") | (tables.exponents["seed"] < 2)]
    with pytest.raises(NoFitError, match="2 independent"):
        CURVATURE["B1"].primary(replace(tables, exponents=few), resampling)


def test_interval_is_over_trainings_not_layers(world, resampling):
    tables = tables_of(world)
    tables.exponents["alpha"] = 2.0 + 0.1 * tables.exponents["seed"]
    result = CURVATURE["B1"].primary(tables, resampling)
    # trainings with medians 2.0, 2.1, 2.2, 2.3; 44 independent layers would give about +-0.04
    assert result.high - result.low > 0.15


def test_what_is_not_there_is_named(world, resampling):
    tables = tables_of(world)
    with pytest.raises(NoFitError, match="network with architecture lstm, only resnet18, vgg11"):
        models_of(tables, "architectures", "lstm")
    with pytest.raises(NoFitError, match=r"network with width 1024\.0, only 64, 128"):
        models_of(tables, "width", 1024.0)
    with pytest.raises(NoFitError, match="no experiment nowhere"):
        models_of(tables, "nowhere")
    with pytest.raises(NoFitError, match="the experiments table is absent"):
        CURVATURE["B1"].primary(ClaimTables(exponents=tables.exponents), resampling)
    with pytest.raises(NoFitError, match="none of 0 layers has a fit"):
        measure_alpha(tables, resampling, roles=("conv",), units="layers", variant="mlp")


def test_a_comparison_needs_one_network(world):
    tables = tables_of(world)
    assert set(variant_layers(tables, "residual", 1.0)["model"]) == {"resnet18"}
    assert set(variant_layers(tables, "residual", 1.0)["experiment"]) == {"residual"}
    tables.experiments.loc[tables.experiments["model"] == "resnet_half", "value"] = 1.0
    with pytest.raises(NoFitError, match=r"several networks at 1\.0 \(resnet18, resnet_half\)"):
        variant_layers(tables, "residual", 1.0)
