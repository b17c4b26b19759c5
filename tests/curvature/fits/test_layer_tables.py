"""What every fit of the measured spectra does with layers that have too little to fit."""

import numpy as np
import pandas as pd
import pytest

from spectral_laws.curvature.fits.factor_models import compare_factor_models
from spectral_laws.curvature.fits.independence import fit_independence
from spectral_laws.curvature.fits.layer_tables import measured_layers, require_entries
from spectral_laws.curvature.fits.weight_tails import fit_weight_tails
from spectral_laws.errors import NoFitError
from spectral_laws.tables.schemas import load_schema

K = np.arange(1.0, 21)
LAYER = ["model", "seed", "layer_index", "layer", "kind", "role"]


def layer(sigma, h, *, name="layer", index=0, part="whole"):
    size = len(sigma)
    return pd.DataFrame(
        {
            **{"model": "net", "seed": 0, "epoch": 7, "final": True, "part": part},
            **{"layer_index": index, "layer": name, "kind": "linear", "role": "linear"},
            **{"n_rows": 30, "n_columns": 40, "index": np.arange(1, size + 1)},
            **{"singular_value": sigma, "directional_curvature": h},
        }
    )


@pytest.fixture
def spectra():
    """A layer with a law and one without gradient, on every part of the batch."""
    tables = []
    for part, alpha in (("whole", 2.0), ("first", 1.9), ("second", 2.1)):
        sigma = K**-0.8 * np.exp(0.05 * np.sin(K))
        tables += [
            layer(sigma, sigma**alpha, part=part),
            layer([0.0], [0.0], part=part, name="dead", index=1),
        ]
    return pd.concat(tables, ignore_index=True)


def test_a_layer_without_gradient_comes_without_directions(spectra):
    alive, dead = measured_layers(spectra[spectra["part"] == "whole"], also=("n_rows",))
    alive.require_gradient()
    assert len(alive.rows) == 20
    assert dead.record["layer"] == "dead"
    assert dead.record["n_rows"] == 30
    assert dead.values("singular_value").size == dead.n_usable(20) == 0
    with pytest.raises(NoFitError, match="gradient is zero"):
        dead.require_gradient()


def test_a_zero_among_others_is_an_entry():
    rows = layer([1.0, 0.5, 0.0], [1.0, 0.5, 0.0])
    assert len(next(measured_layers(rows)).rows) == 3


def test_entries_are_counted_among_all():
    require_entries(np.array([True] * 5 + [False] * 3), "h > 0")
    with pytest.raises(NoFitError, match=r"^4 of 9 directions have h > 0; a fit needs 5$"):
        require_entries(np.array([True] * 4 + [False] * 5), "h > 0")


def test_independence_of_a_layer_without_gradient(spectra):
    table = fit_independence(spectra, top_k=20, permutations=20, seed=0)
    assert list(table["layer"]) == ["layer", "dead"]
    assert list(table["status"]) == ["fit", "no fit"]
    dead = table.iloc[1]
    assert dead["reason"].startswith("whole part of the batch: ")
    assert dead["n_used"] == 0
    assert dead[load_schema("curvature/independence").nullable].isna().all()


def test_factor_models_of_a_layer_without_gradient(spectra):
    whole = spectra[spectra["part"] == "whole"].drop_duplicates("layer")
    factors = whole[LAYER].merge(
        pd.DataFrame({"index": np.arange(1, 21), "eigenvalue": K**-1.5}), how="cross"
    )
    factors = factors.assign(factor="a", size=40, participation_rank=2.0, entropy_rank=3.0)
    table = compare_factor_models(factors, spectra, top_k=20).set_index("layer")
    assert table.loc["layer", "status"] == "fit"
    assert table.loc["dead", "status"] == "no fit"
    assert table.loc["dead", "reason"].startswith("gradient: ")
    assert pd.isna(table.loc["dead", "same"])


def test_weights_of_a_layer_without_gradient_are_fitted_all_the_same(spectra):
    rng = np.random.default_rng(0)
    weights = {f"{name}.weight": rng.normal(size=(30, 40)) for name in ("layer", "dead")}
    table = fit_weight_tails({("net", 0): weights}, spectra)
    assert list(table["layer"]) == ["layer", "dead"]
    assert (table["status"] == "fit").all()
