"""Raw arrays published by the author, refitted: the stored exponents must come back.

The files are read where they lie and are no part of this repository.
"""

import json

import numpy as np
import pytest

from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.fitting.participation import participation_ratio, participation_ratio_bound
from spectral_laws.fitting.rank_models import compare_rank_models

EXACT = {"abs": 1e-9}
SINGLE = {"abs": 1e-6}  # these two files store exponents computed in float32 or from float32 logs


def load(reference, name):
    return json.loads((reference / f"results_{name}.json").read_text(encoding="utf-8"))


def triangle_layers(reference):
    return [
        (experiment["experiment"], layer)
        for experiment in load(reference, "alpha_triangle")
        for layer in experiment["results"]
    ]


def arrays(layer):
    sigma, h = np.array(layer["sigma"]), np.array(layer["h_exact"])
    return np.arange(1.0, sigma.size + 1), sigma, h


def test_triangle_alpha_and_gamma(reference):
    layers = triangle_layers(reference)
    assert len(layers) == 24
    for _, layer in layers:
        k, sigma, h = arrays(layer)
        alpha, gamma = fit_loglog(sigma, h), fit_loglog(k, sigma)
        assert alpha.slope == pytest.approx(layer["alpha"], **EXACT)
        assert alpha.r2 == pytest.approx(layer["r2_alpha"], **EXACT)
        assert -gamma.slope == pytest.approx(layer["gamma"], **EXACT)
        assert gamma.r2 == pytest.approx(layer["r2_gamma"], **EXACT)


def test_triangle_s_is_fitted_to_sorted_curvatures(reference):
    """Documented exception: the stored s is no slope over the ranks of the singular values.

    It is reproduced by the positive curvatures sorted in decreasing order, against their own
    rank. Over the singular values' ranks s differs on every layer, by up to 0.25.
    """
    differences = []
    for _, layer in triangle_layers(reference):
        k, _, h = arrays(layer)
        kept = np.sort(h[h > 0])[::-1]
        by_sorting = fit_loglog(np.arange(1.0, kept.size + 1), kept)
        assert -by_sorting.slope == pytest.approx(layer["s_hessian"], **EXACT)
        assert by_sorting.r2 == pytest.approx(layer["r2_s_hessian"], **EXACT)
        differences.append(layer["s_hessian"] + fit_loglog(k, h).slope)
    assert min(differences) > 1e-3
    assert max(differences) == pytest.approx(0.25, abs=0.01)


def test_triangle_errors_follow_from_the_exponents(reference):
    for _, layer in triangle_layers(reference):
        product = layer["alpha"] * layer["gamma"]
        assert layer["predicted_s"] == pytest.approx(product, **EXACT)
        error = abs(layer["s_hessian"] - product)
        assert layer["triangle_error"] == pytest.approx(error, **EXACT)
        assert layer["triangle_relative_error"] == pytest.approx(
            error / abs(layer["s_hessian"]), **EXACT
        )


def test_triangle_gamma_of_heads_includes_a_value_below_rank(reference):
    """Documented exception: gamma is stored over all singular values, alpha where h > 0.

    The two softmax heads of ten classes have rank nine; their tenth singular value is rounding
    noise with h <= 0. It enters the stored gamma and raises it by about 2.
    """
    heads = [
        layer for _, layer in triangle_layers(reference) if layer["name"] in ("fc", "classifier.3")
    ]
    assert len(heads) == 2
    for layer in heads:
        k, sigma, h = arrays(layer)
        assert sigma[-1] < 1e-5 * sigma[0]
        assert h[-1] <= 0
        same_entries = -fit_loglog(k[h > 0], sigma[h > 0]).slope
        assert layer["gamma"] - same_entries == pytest.approx(2, abs=0.3)


@pytest.mark.parametrize("part", ["conv_results", "fc_result"])
def test_gap_file_alpha(reference, part):
    stored = load(reference, "conv_gap_v2")[part]
    for layer in stored if isinstance(stored, list) else [stored]:
        _, sigma, h = arrays(layer)
        fit = fit_loglog(sigma, h)
        assert fit.slope == pytest.approx(layer["alpha_exact"], **SINGLE)
        assert fit.r2 == pytest.approx(layer["r2_exact"], **SINGLE)


def test_hypothesis_file_alpha_and_counts(reference):
    layers = [
        layer
        for experiment in load(reference, "hypothesis").values()
        for network in experiment.values()
        for layer in network
    ]
    assert len(layers) == 18
    for layer in layers:
        _, sigma, h = arrays(layer)
        fit = fit_loglog(sigma, h)
        assert fit.n_used == layer["n_valid"]
        assert fit.slope == pytest.approx(layer["alpha"], **SINGLE)
        assert fit.r2 == pytest.approx(layer["r2"], **SINGLE)


def test_rank_models_winner_and_bic(reference):
    spectra = {(name, layer["name"]): layer["sigma"] for name, layer in triangle_layers(reference)}
    stored = load(reference, "model_fit_comparison")
    wins = dict.fromkeys(stored["summary"]["wins_by_bic"], 0)
    for layer in stored["layers"]:
        models = compare_rank_models(spectra[layer["experiment"], layer["name"]])
        assert models.best == layer["best_model_bic"]
        wins[models.best] += 1
        assert set(models.bic) == set(layer["fits"])
        for name, value in models.bic.items():
            assert value == pytest.approx(layer["fits"][name]["bic"], **EXACT)
    assert wins == stored["summary"]["wins_by_bic"]


def dimension_layers(reference):
    return [
        layer for experiment in load(reference, "intrinsic_dim") for layer in experiment["results"]
    ]


def test_predicted_effective_rank_is_the_bound_over_all_directions(reference):
    layers = dimension_layers(reference)
    assert len(layers) == 17
    for layer in layers:
        product = layer["alpha"] * layer["gamma"]
        predicted = participation_ratio_bound(product, n_terms=layer["n_total_directions"])
        assert predicted == pytest.approx(layer["predicted_eff_rank"], rel=1e-6)
        assert predicted <= participation_ratio_bound(product)


def test_participation_ratio_convention(reference):
    """Documented exception: the file keeps 5 of the 25 curvatures behind each stored ratio.

    So the ratio cannot be recomputed, only bracketed: from below by the five alone (more entries
    raise it here) and from above by twenty more entries as large as the second one. The same
    bracket for the squares of the curvatures, another convention in use, misses most layers.
    """
    checked = squares = 0
    for layer in dimension_layers(reference):
        top = np.array(layer["h_top"])
        if (top <= 0).any() or layer["top_k"] != 25:
            continue
        filled = np.append(top, np.full(20, top[1:].max()))
        stored = layer["eff_rank_curvature_pr"]
        assert participation_ratio(top) <= stored <= participation_ratio(filled)
        squares += participation_ratio(filled**2) >= stored
        checked += 1
    assert checked == 15
    assert squares < 8
