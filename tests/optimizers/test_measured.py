import numpy as np
import pytest

from spectral_laws.errors import DataError
from spectral_laws.optimizers.measured import layer_means


def test_exponents_are_means_over_the_trained_networks_of_the_model(exponents):
    # Rows of other models and of checkpoints are 10 and 20 larger.
    assert layer_means(exponents, "small", "alpha") == {"layers.0": 1, "layers.1": 1.5, "head": 2}
    assert layer_means(exponents, "small", "s") == {"layers.0": 1, "layers.1": 1.5, "head": 2}
    means = layer_means(exponents, "other", "s")
    assert means == {"layers.0": 21, "layers.1": 21.5, "head": 22}


def test_layers_without_a_fit_are_left_out_and_means_keep_their_sign(exponents):
    mine = (exponents["model"] == "small") & exponents["final"]
    unfitted = mine & (exponents["layer"] == "layers.0")
    exponents.loc[unfitted, ["status", "s"]] = ["no fit", np.nan]
    exponents.loc[mine & (exponents["layer"] == "layers.1"), "s"] = [-3.0, 1.0]
    assert layer_means(exponents, "small", "s") == {"layers.1": -1, "head": 2}
    # A layer that was fitted in one training has this one's.
    exponents.loc[unfitted & (exponents["seed"] == 1), ["status", "s"]] = ["fit", 0.25]
    assert layer_means(exponents, "small", "s") == {
        "layers.0": 0.25,
        "layers.1": -1,
        "head": 2,
    }
    exponents.loc[mine, "s"] = 0.0
    assert set(layer_means(exponents, "small", "s").values()) == {0}


def test_a_table_that_lacks_something_is_named(exponents):
    with pytest.raises(DataError, match="exponents table: no column final, s"):
        layer_means(exponents.drop(columns=["final", "s"]), "small", "alpha")
    with pytest.raises(DataError, match="no fitted layer of a trained model 'large'"):
        layer_means(exponents, "large", "alpha")
    with pytest.raises(DataError, match="no fitted layer of a trained model 'small'"):
        layer_means(exponents.assign(status="no fit"), "small", "alpha")
    with pytest.raises(DataError, match="no fitted layer of a trained model 'small'"):
        layer_means(exponents.assign(final=False), "small", "alpha")
