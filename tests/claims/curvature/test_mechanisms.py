from dataclasses import replace

import numpy as np
import pytest

from spectral_laws.claims.curvature.evidence import CURVATURE
from spectral_laws.claims.tables import ClaimTables
from spectral_laws.errors import NoFitError


@pytest.fixture
def ablations(world):
    def make(*, exponents=None, spectra=None, **experiments):
        fits = world["exponents"](**(exponents or {}))
        return ClaimTables(
            exponents=fits,
            experiments=world["experiments"](fits, **experiments),
            spectra=world["spectra"](fits, **(spectra or {})),
        )

    return make


@pytest.mark.parametrize(
    ("claim", "column", "with_it", "without"),
    [("B7", "phi_a", "vit_tiny", "vit_no_norm"), ("B8", "phi_delta", "resnet18", "resnet_no_skip")],
)
@pytest.mark.parametrize(("change", "expected"), [(-0.4, "reproduced"), (0.4, "not reproduced")])
def test_magnitude_of_a_slope_with_minus_without(
    ablations, resampling, verdict, claim, column, with_it, without, change, expected
):
    tables = ablations(**{column: {with_it: 0.5 + change, without: 0.5}})
    result = CURVATURE[claim].primary(tables, resampling)
    experiment = {"B7": "layer_norm", "B8": "residual"}[claim]
    rows = tables.experiments
    rows = rows[rows["final"] & (rows["experiment"] == experiment)]
    rows = rows.assign(size=rows[column].abs())
    medians = rows.groupby(["model", "seed"])["size"].median().unstack("model")
    assert result.value == pytest.approx((medians[with_it] - medians[without]).mean(), abs=1e-12)
    assert result.value == pytest.approx(change, abs=0.05)
    assert result.low <= result.value <= result.high
    assert (result.n_clusters, result.clusters) == (4, "seeds")
    levels = [side.value for side in result.beside.values()]
    assert levels == pytest.approx([medians[with_it].mean(), medians[without].mean()], abs=1e-12)
    assert verdict(claim, result) == expected


def test_only_layers_in_both_count(ablations, resampling):
    tables = ablations()
    rows = tables.experiments
    # Where the skip is cut, one layer of one seed has no gradient; its partner must not count.
    cut = (rows["model"] == "resnet_no_skip") & (rows["seed"] == 0) & (rows["layer_index"] < 2)
    partner = (rows["model"] == "resnet18") & (rows["seed"] == 0) & (rows["layer_index"] < 2)
    rows.loc[cut, "phi_delta"] = np.nan
    rows.loc[partner, "phi_delta"] = 1e3
    result = CURVATURE["B8"].primary(tables, resampling)
    assert result.n_units == 4 * 8 - 2
    assert result.scope == "skip scale 1.0 minus skip scale 0.0, 2 without a fit in both"
    assert result.value == pytest.approx(-0.7, abs=0.05)
    rows.loc[rows["model"] == "resnet_no_skip", "phi_delta"] = np.nan
    with pytest.raises(NoFitError, match="none of 32 layers has a fit in both, skip scale 1"):
        CURVATURE["B8"].primary(tables, resampling)


def test_seeds_are_resampled_in_pairs(ablations, resampling):
    tables = ablations(phi_delta={"resnet18": 0.3, "resnet_no_skip": 0.8})
    rows = tables.experiments
    # Large differences between seeds that both networks share leave the difference sharp.
    rows["phi_delta"] += np.sign(rows["phi_delta"]) * 10.0 * rows["seed"]
    result = CURVATURE["B8"].primary(tables, resampling)
    assert result.value == pytest.approx(-0.5, abs=0.05)
    assert result.high - result.low < 0.2


def test_networks_without_such_layers_give_no_value(ablations, resampling):
    """Layer normalisation can be compared on another architecture than a transformer."""
    tables = ablations()
    tables.experiments["role"] = "linear"
    tables.spectra["role"] = "linear"
    tables.exponents["role"] = "linear"
    for claim in ("B1", "B2", "B9", "B17", "B18"):
        with pytest.raises(NoFitError):
            CURVATURE[claim].primary(tables, resampling)
        for name, measure in CURVATURE[claim].sensitivity.items():
            if name not in ("hidden layers", "all layers"):
                with pytest.raises(NoFitError):
                    measure(tables, resampling)
    rows = tables.experiments
    rows.loc[rows["experiment"] == "residual", "final"] = False
    with pytest.raises(NoFitError, match=r"experiment residual has no trained network at 1\.0"):
        CURVATURE["B8"].primary(tables, resampling)


@pytest.mark.parametrize("claim", ["B7", "B8", "B18", "B19"])
def test_two_seeds_are_too_few(ablations, resampling, claim):
    with pytest.raises(NoFitError, match="2 independent"):
        CURVATURE[claim].primary(ablations(exponents={"seeds": 2}), resampling)


def test_beside_the_slopes_stand_other_layers_and_half_the_skip(ablations, resampling):
    tables = ablations(phi_delta={"resnet18": 0.1, "resnet_half": 0.6, "resnet_no_skip": 0.9})
    half = CURVATURE["B8"].sensitivity["half the skip"](tables, resampling)
    assert half.value == pytest.approx(-0.3, abs=0.05)
    rows = tables.experiments
    fed = rows["role"].isin(["attention_qkv", "mlp_up", "head"])
    rows.loc[(rows["model"] == "vit_tiny") & fed, "phi_a"] = 2.0
    normalised = CURVATURE["B7"].sensitivity["layers that read a normalised input"]
    result = normalised(tables, resampling)
    assert result.value == pytest.approx(2.0 - 0.8, abs=0.05)
    assert result.n_units == 4 * 5


@pytest.mark.parametrize(
    ("shift", "expected"),
    [(0.8, "reproduced"), (0.2, "direction reproduced"), (-0.3, "not reproduced")],
)
def test_task(ablations, resampling, verdict, shift, expected):
    shifts = {"gpt_classes": shift, "vit_10": 0.6, "vit_no_norm": -0.4}
    tables = ablations(exponents={"shift": shifts, "noise": 0.02, "alpha": {"head": 50.0}})
    rows = tables.experiments
    rows.loc[(rows["model"] == "gpt_classes") & (rows["role"] == "head"), "alpha"] = -50.0
    result = CURVATURE["B18"].primary(tables, resampling)
    assert result.value == pytest.approx(shift, abs=0.03)
    assert result.n_units == 4 * 8  # without the heads
    assert result.scope == "task classification minus task language modelling"
    assert verdict("B18", result) == expected
    outputs, norm = CURVATURE["B18"].sensitivity.values()
    assert outputs(tables, resampling).value == pytest.approx(0.6, abs=0.03)
    assert norm(tables, resampling).value == pytest.approx(-0.4, abs=0.03)


@pytest.mark.parametrize(
    ("growth", "expected"),
    [(0.7, "reproduced"), (2.0, "direction reproduced"), (-0.5, "not reproduced")],
)
def test_width(ablations, resampling, verdict, growth, expected):
    doublings = {"mlp_w64": 0.0, "mlp_w128": growth / 3, "mlp": 2 * growth / 3, "mlp_w512": growth}
    tables = ablations(exponents={"ratio": doublings})
    rows = tables.experiments
    rows.loc[(rows["model"] == "mlp_w512") & (rows["layer_index"] == 1), "participation_ratio"] = 99
    result = CURVATURE["B19"].primary(tables, resampling)
    assert result.value == pytest.approx(growth, abs=0.03)
    assert result.n_units == 4
    assert verdict("B19", result) == expected
    slope, everywhere = CURVATURE["B19"].sensitivity.values()
    over_all = slope(tables, resampling)
    assert over_all.value == pytest.approx(growth, abs=0.03)
    assert over_all.scope == "width 64 to 512, 4 networks"
    assert over_all.n_units == 16
    assert everywhere(tables, resampling).n_units == 16


def test_other_widths_are_no_value_but_their_slope_is_shown(ablations, resampling):
    tables = ablations(exponents={"ratio": {"mlp_w64": 0.0, "mlp_w128": 0.3, "mlp": 0.6}})
    rows = tables.experiments[tables.experiments["model"] != "mlp_w512"]
    tables = replace(tables, experiments=rows)
    with pytest.raises(NoFitError, match=r"no network with width 512\.0, only 64, 128, 256"):
        CURVATURE["B19"].primary(tables, resampling)
    slope, _ = CURVATURE["B19"].sensitivity.values()
    assert slope(tables, resampling).value == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    ("drop", "expected"),
    [(1.5, "reproduced"), (0.5, "direction reproduced"), (-0.5, "not reproduced")],
)
def test_alignment_of_heads_with_more_outputs_than_classes(
    ablations, resampling, verdict, drop, expected
):
    tables = ablations(spectra={"drop": drop, "surplus": 6})
    result = CURVATURE["B9"].primary(tables, resampling)
    assert result.value == pytest.approx(-drop)
    assert result.n_units == 2 * 4  # 2 and 10 classes; 24 directions end before 100
    assert result.beside["step between neighbours"].value == pytest.approx(-drop)
    assert verdict("B9", result) == expected


def test_a_softmax_head_has_no_directions_beyond_its_classes(ablations, resampling):
    """Beyond k = c there is nothing; the last direction and the hidden layers stand beside."""
    tables = ablations(spectra={"drop": 2.0})
    with pytest.raises(NoFitError, match="no head has a singular direction beyond k = c"):
        CURVATURE["B9"].primary(tables, resampling)
    rows = tables.spectra
    head = (rows["role"] == "head") & (rows["model"] == "mlp_10")
    rows.loc[head & (rows["index"] == 9), "rho_delta"] *= 100.0
    last, hidden = CURVATURE["B9"].sensitivity.values()
    at_rank = last(tables, resampling)
    assert at_rank.value == pytest.approx(2.0)
    assert (
        at_rank.n_units == 4
    )  # of 2 classes there is one direction, of 100 the 99th is not measured
    assert at_rank.scope == "mlp_10, 12 without directions on both sides"
    below = hidden(tables, resampling)
    assert below.value == pytest.approx(-2.0)
    assert below.n_units == 2 * 4 * 3


def test_a_gradual_fall_is_told_from_a_step(ablations, resampling):
    tables = ablations(spectra={"drop": 0.0})
    tables.spectra["rho_delta"] = 10.0 ** (-0.1 * tables.spectra["index"])
    hidden = CURVATURE["B9"].sensitivity["hidden layers"](tables, resampling)
    assert hidden.value < -1
    assert hidden.beside["step between neighbours"].value == pytest.approx(-0.1)


def test_directions_without_an_alignment_do_not_count(ablations, resampling):
    tables = ablations(spectra={"surplus": 6})
    rows = tables.spectra
    rows.loc[(rows["model"] == "mlp_10") & (rows["index"] > 10), "rho_delta"] = np.nan
    assert CURVATURE["B9"].primary(tables, resampling).n_units == 4
    rows["rho_delta"] = np.nan
    with pytest.raises(NoFitError, match="no head of experiment classes has an output"):
        CURVATURE["B9"].primary(tables, resampling)
