import json

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_table
from spectral_laws.curvature.experiments import Comparison, tabulate_experiments
from spectral_laws.errors import ConfigError, DataError
from spectral_laws.settings.base import parse_settings

IMAGES = {"image_size": 16, "train_size": 64, "test_size": 32}
LANGUAGE = {
    **{"dataset": "synthetic_language", "vocabulary": 50, "zipf_exponent": 1.0, "n_chains": 4},
    **{"context": 16, "train_size": 64, "test_size": 32},
}
DATA = {
    "few": {"dataset": "synthetic_images", "n_classes": 10, "channels": 3, "noise": 1.0, **IMAGES},
    "many": {
        "dataset": "synthetic_images",
        "n_classes": 200,
        "channels": 3,
        "noise": 1.0,
        **IMAGES,
    },
    "digits": {"dataset": "digits", "folder": None, **IMAGES},
    "next": {**LANGUAGE, "task": "language_modelling"},
    "which": {**LANGUAGE, "task": "classification"},
    "text": {"dataset": "text", "file": None, "context": 16, "train_size": 64, "test_size": 32},
}
MLP = {"architecture": "mlp", "training": "sgd", "width": 16, "depth": 2}
GPT = {"architecture": "gpt2", "training": "sgd", "width": 16, "depth": 2, "heads": 2}
RESNET = {"architecture": "resnet18", "training": "sgd", "width": 16, "data": "digits"}
MODELS = {
    "mlp_few": {**MLP, "data": "few"},
    "mlp_many": {**MLP, "data": "many"},
    "mlp_wide": {**MLP, "data": "few", "width": 64},
    "mlp_norm": {**MLP, "data": "few", "normalisation": "layer"},
    "resnet": RESNET,
    "separable": {**RESNET, "separable": True},
    "half_skip": {**RESNET, "skip_scale": 0.5},
    "gpt2_next": {**GPT, "data": "next"},
    "gpt2_which": {**GPT, "data": "which"},
    "gpt2_text": {**GPT, "data": "text"},
}


def comparison(**experiments):
    """Settings with experiments given as over=[models]."""
    entries = {
        name: {"over": over, "models": models} for name, (over, models) in experiments.items()
    }
    settings = {"experiments": entries, "models": MODELS, "data": DATA}
    return parse_settings(Comparison, json.dumps(settings))


def exponents(models):
    rows = []
    for number, model in enumerate(models):
        for seed in (0, 1):
            for epoch, final in ((0, False), (9, True)):
                for index, name in enumerate(("one", "two")):
                    fitted = not (name == "two" and seed == 1)
                    rows.append(
                        {
                            **{"model": model, "seed": seed, "epoch": epoch, "final": final},
                            **{"layer_index": index, "layer": name, "kind": "linear"},
                            **{"role": "mlp_up", "status": "fit" if fitted else "no fit"},
                            "reason": "" if fitted else "too few",
                            "alpha": 2.0 + number if fitted else np.nan,
                            "gamma": 0.5 if fitted else np.nan,
                            "s": 1.0 + number if fitted else np.nan,
                            "participation_ratio": 1.5 if fitted else np.nan,
                            "rank_model": "lognormal" if fitted else None,
                        }
                    )
    return pd.DataFrame(rows)


def decomposition(models):
    rows = [
        {
            **{"model": model, "seed": seed, "layer_index": 0, "layer": "one"},
            **{"phi_a": 0.1 + seed, "phi_delta": 0.2 + number},
        }
        for number, model in enumerate(models)
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


def tabulate(settings, models=tuple(MODELS)):
    return tabulate_experiments(
        settings.experiments,
        settings.models,
        n_classes=settings.n_classes(),
        tasks=settings.tasks(),
        exponents=exponents(models),
        decomposition=decomposition(models),
    )


@pytest.mark.parametrize(
    ("over", "models", "variants", "values"),
    [
        ("n_classes", ["mlp_few", "mlp_many"], ["10", "200"], [10, 200]),
        ("width", ["mlp_few", "mlp_wide"], ["16", "64"], [16, 64]),
        ("normalisation", ["mlp_few", "mlp_norm"], ["none", "layer"], None),
        ("architecture", ["mlp_few", "resnet"], ["mlp", "resnet18"], None),
        ("separable", ["resnet", "separable"], ["false", "true"], None),
        ("skip_scale", ["resnet", "half_skip"], ["1", "0.5"], [1.0, 0.5]),
        (
            "task",
            ["gpt2_next", "gpt2_which", "gpt2_text"],
            ["language_modelling", "classification", "language_modelling"],
            None,
        ),
        ("n_classes", ["gpt2_next", "gpt2_which"], ["50", "4"], [50, 4]),
    ],
)
def test_variants_are_what_the_models_differ_in(over, models, variants, values):
    table = tabulate(comparison(test=(over, models)))
    assert set(table["experiment"]) == {"test"}
    assert set(table["over"]) == {over}
    each = table.drop_duplicates("model")
    assert list(each["model"]) == models
    assert list(each["variant"]) == variants
    if values is None:
        assert table["value"].isna().all()
    else:
        assert list(each["value"]) == values


def test_rows_are_those_of_the_exponents_with_slopes_beside_the_final_ones():
    settings = comparison(
        widths=("width", ["mlp_wide", "mlp_few"]), classes=("n_classes", ["mlp_few", "mlp_many"])
    )
    table = tabulate(settings)
    assert len(table) == 2 * 2 * 8
    assert list(table["experiment"].unique()) == ["widths", "classes"]
    rows = table[(table["experiment"] == "widths") & (table["model"] == "mlp_few")]
    expected = exponents(MODELS)
    expected = expected[expected["model"] == "mlp_few"].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        rows[expected.columns].reset_index(drop=True), expected, check_dtype=False
    )
    sloped = rows["final"] & (rows["layer"] == "one")
    assert rows.loc[sloped, "phi_a"].tolist() == [0.1, 1.1]
    assert rows.loc[~sloped, ["phi_a", "phi_delta"]].isna().all(axis=None)


def test_models_that_do_not_differ_are_refused():
    for over, models in (
        ("width", ["mlp_few", "mlp_many"]),
        ("task", ["mlp_few", "gpt2_which"]),
        ("skip_scale", ["resnet", "separable"]),
    ):
        with pytest.raises(ConfigError, match=rf"^experiments\.twins: {over} of {models[0]}"):
            tabulate(comparison(twins=(over, models)))
    with pytest.raises(ConfigError, match=r"experiments\.deep \(resnet\): resnet18 has no depth"):
        tabulate(comparison(deep=("depth", ["mlp_few", "resnet"])))
    with pytest.raises(ConfigError, match=r"experiments\.chars .*data 'text' is not known"):
        tabulate(comparison(chars=("n_classes", ["gpt2_next", "gpt2_text"])))


def test_missing_rows_and_columns_are_refused():
    settings = comparison(widths=("width", ["mlp_few", "mlp_wide"]))
    with pytest.raises(DataError, match=r"no row of mlp_wide \(experiments\.widths\)"):
        tabulate(settings, models=["mlp_few"])
    with pytest.raises(DataError, match="decomposition table: no column phi_a"):
        tabulate_experiments(
            settings.experiments,
            settings.models,
            n_classes=settings.n_classes(),
            tasks=settings.tasks(),
            exponents=exponents(MODELS),
            decomposition=decomposition(MODELS).drop(columns="phi_a"),
        )


def test_no_experiments_give_an_empty_table_and_the_script_writes_the_full_one(
    tmp_path, run_script
):
    assert tabulate(comparison()).empty
    settings = comparison(widths=("width", ["mlp_few", "mlp_wide"]))
    paths = {name: tmp_path / f"{name}.parquet" for name in ("exponents", "decomposition")}
    fits = exponents(MODELS)
    fits.to_parquet(paths["exponents"])
    decomposition(MODELS).to_parquet(paths["decomposition"])
    output = tmp_path / "experiments.parquet"
    options = paths | {"comparison": settings.model_dump_json(), "output": output}
    assert run_script("compare_models", **options).returncode == 0
    pd.testing.assert_frame_equal(read_table(output), tabulate(settings), check_dtype=False)
