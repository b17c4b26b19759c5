"""The scripts as the pipeline calls them, without the pipeline."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
import typer

from spectral_laws.artifacts import (
    read_arrays,
    read_provenance,
    read_table,
    write_arrays,
)
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.fits.exponents import fit_exponents
from spectral_laws.curvature.spectra import RUNGS
from spectral_laws.provenance import Provenance

DATA = {
    "dataset": "digits",
    "folder": None,
    "image_size": 8,
    "train_size": 64,
    "test_size": 32,
}
MODEL = {
    "architecture": "mlp",
    "data": "images",
    "training": "sgd",
    "width": 12,
    "depth": 1,
    "checkpoints": [0],
}
TRAINING = {
    "optimizer": "sgd",
    "max_epochs": 2,
    "batch_size": 16,
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "target_loss": 1e-6,
}
MEASUREMENT = {"batch_size": 40, "top_k": 5, "chunk_size": 16, "method": "auto"}
CONTROLS = {
    "replicates": 1,
    "batch_size": 24,
    "eigenvalues": 2,
    "finite_difference_step": 1e-3,
}


def load(root: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, root / "workflow" / "scripts" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def measure(run_script, folder, tmp_path):
    """Run measure_curvature in this process; returns exit status and standard error."""
    base = {
        "model_name": "small",
        "model": MODEL,
        "measurement": MEASUREMENT,
        "data_file": folder / "data.safetensors",
        "checkpoints": folder / "networks.safetensors",
        "halves": True,
        "seed": 5,
        "spectra": tmp_path / "spectra.parquet",
        "factors": tmp_path / "factors.parquet",
    }

    def call(**changes: object) -> tuple[int, str]:
        done = run_script("measure_curvature", **base | changes)
        return done.returncode, done.stderr

    return call


@pytest.fixture(scope="module")
def folder(run_script, tmp_path_factory) -> Path:
    """The whole chain: data, two trained networks, their spectra and controls."""
    out = tmp_path_factory.mktemp("chain")
    place = {"model_name": "small", "model": MODEL, "seed": 5, "device": "cpu"}
    place |= {"data_file": out / "data.safetensors", "checkpoints": out / "networks.safetensors"}
    steps = [
        run_script("prepare_data", data=DATA, seed=5, output=place["data_file"]),
        run_script(
            "train_model",
            training=TRAINING,
            history=out / "history.parquet",
            scratch=out / "scratch",
            first=1,
            last=2,
            **place,
        ),
        run_script(
            "measure_curvature",
            measurement=MEASUREMENT,
            halves=True,
            spectra=out / "spectra.parquet",
            factors=out / "factors.parquet",
            **place,
        ),
        run_script(
            "measure_controls",
            measurement=MEASUREMENT,
            controls=CONTROLS | {"replicates": 2},
            eigenvalues=out / "eigenvalues.parquet",
            differences=out / "differences.parquet",
            **place,
        ),
    ]
    for step in steps:
        assert step.returncode == 0, step.stderr
    assert "epochs: 2/2" in steps[1].stderr
    return out


def test_prepare_data_writes_the_arrays(folder):
    data = Samples.read(folder / "data.safetensors")
    assert data.train_inputs.shape == (64, 1, 8, 8)
    assert data.test_targets.shape == (32,)
    provenance = read_provenance(folder / "data.safetensors")
    assert provenance["parameters"] == DATA
    assert provenance["seed"] == 5


def test_train_model_writes_weights_and_history_and_clears_its_scratch(folder):
    history = read_table(folder / "history.parquet")
    assert list(history) == [
        "model",
        "seed",
        "epoch",
        "learning_rate",
        "train_loss",
        "train_accuracy",
        "test_loss",
        "test_accuracy",
    ]
    rows = history[["model", "seed", "epoch"]].values.tolist()
    assert rows == [["small", seed, epoch] for seed in (1, 2) for epoch in (1, 2)]
    arrays = read_arrays(folder / "networks.safetensors")
    assert arrays["2/0/head.weight"].shape == arrays["2/2/head.weight"].shape == (10, 12)
    assert {name.rsplit("/", 1)[0] for name in arrays} == {"1/0", "1/2", "2/0", "2/2"}
    assert list((folder / "scratch").iterdir()) == []


def test_measure_curvature_writes_the_tidy_table(folder):
    table = read_table(folder / "spectra.parquet")
    assert list(table) == [
        "model",
        "architecture",
        "seed",
        "epoch",
        "final",
        "part",
        "layer_index",
        "layer",
        "kind",
        "role",
        "n_rows",
        "n_columns",
        "index",
        "singular_value",
        "directional_curvature",
        "method",
        "n_samples",
        "train_loss",
        "n_below_rank",
        *RUNGS,
    ]
    layers = table.groupby("layer_index").first()
    assert layers["layer"].tolist() == ["layers.0", "head"]
    assert layers["kind"].tolist() == ["linear", "head"]
    assert layers["role"].tolist() == ["linear", "head"]
    assert layers[["n_rows", "n_columns"]].values.tolist() == [[12, 64], [10, 12]]
    measured = table.drop_duplicates(["seed", "epoch", "final", "part"])
    assert measured[["seed", "epoch", "final", "part", "n_samples"]].values.tolist() == [
        row
        for seed in (1, 2)
        for row in (
            [seed, 0, False, "whole", 40],
            [seed, 2, True, "whole", 40],
            [seed, 2, True, "first", 20],
            [seed, 2, True, "second", 20],
        )
    ]
    assert (
        table.groupby(["seed", "epoch", "part", "layer"])["index"].apply(list).map(len) == 5
    ).all()
    assert set(table["method"]) == {"gauss_newton"}
    assert (table["directional_curvature"] > 0).all()
    has_ladder = table["final"] & (table["part"] == "whole")
    assert table.loc[has_ladder, list(RUNGS)].notna().all(axis=None)
    assert table.loc[~has_ladder, list(RUNGS)].isna().all(axis=None)
    ladder = table[has_ladder]
    np.testing.assert_allclose(ladder["gauss_newton"], ladder["directional_curvature"], rtol=1e-3)
    parameters = read_provenance(folder / "spectra.parquet")["parameters"]
    assert parameters["measurement"] == MEASUREMENT
    assert parameters["halves"] is True


def test_the_halves_are_disjoint_and_make_the_whole(folder):
    table = read_table(folder / "spectra.parquet")
    losses = table[table["final"]].pivot_table("train_loss", index="seed", columns="part")
    np.testing.assert_allclose(losses["whole"], (losses["first"] + losses["second"]) / 2, rtol=1e-6)


def test_a_models_own_number_of_directions_goes_before_the_measurements(measure, tmp_path):
    status, errors = measure(model=MODEL | {"top_k": 3})
    assert status == 0, errors
    assert set(read_table(tmp_path / "spectra.parquet")["index"]) == {1, 2, 3}


def test_measure_curvature_writes_the_factors(folder):
    table = read_table(folder / "factors.parquet")
    sizes = table.groupby(["layer", "factor"])["size"].unique().map(list).to_dict()
    assert sizes == {
        ("layers.0", "delta"): [12],
        ("layers.0", "a"): [64],
        ("head", "delta"): [10],
        ("head", "a"): [12],
    }
    assert table.groupby(["seed", "layer", "factor"])["eigenvalue"].is_monotonic_decreasing.all()
    assert (table["participation_rank"] <= table["entropy_rank"] * (1 + 1e-9)).all()
    spectra = read_table(folder / "spectra.parquet")
    rows = spectra[spectra["rho_a"].notna()].merge(
        table[table["factor"] == "a"], on=["model", "seed", "layer", "index"]
    )
    assert len(rows) == 20
    np.testing.assert_allclose(rows["lambda_a"], rows["eigenvalue"], rtol=1e-12)


def test_measure_controls_writes_eigenvalues_and_differences(folder):
    eigenvalues = read_table(folder / "eigenvalues.parquet")
    first = eigenvalues[eigenvalues["index"] == 1]
    assert first[["seed", "layer"]].values.tolist() == [[1, "layers.0"], [1, "head"]]
    assert (first["eigenvalue"] >= first["directional_curvature"] * (1 - 1e-5)).all()
    assert eigenvalues["overlap"].between(0, 1 + 1e-9).all()
    differences = read_table(folder / "differences.parquet")
    assert len(differences) == 10
    ratio = differences["finite_difference"] / differences["directional_curvature"]
    # Only the leading direction is far above the rounding of float32 gradients.
    assert ratio[differences["index"] == 1].between(0.5, 2).all()
    assert (differences["step"] == 1e-3).all()


def test_the_measurement_is_repeatable(measure, folder, tmp_path):
    status, _ = measure(measurement=MEASUREMENT | {"chunk_size": 7})
    assert status == 0
    first, second = read_table(folder / "spectra.parquet"), read_table(tmp_path / "spectra.parquet")
    pd.testing.assert_frame_equal(first, second, rtol=1e-3)
    np.testing.assert_allclose(first["train_loss"], second["train_loss"], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "cuda"}, "device: cuda is not available"),
        ({"device": "tpu"}, "device: must be cpu or cuda"),
        ({"model": MODEL | {"width": 13}}, "layers.0.weight: float32 (12, 64), expected"),
        ({"model": {"architecture": "mlp", "data": "x", "training": "x"}}, "width: missing"),
        ({"measurement": MEASUREMENT | {"batch_size": 65}}, "measurement.batch_size: 65"),
        ({"data_file": "absent.safetensors"}, "absent.safetensors: no such array file"),
        ({"checkpoints": "absent.safetensors"}, "absent.safetensors: no such array file"),
        ({"checkpoints": "DATA"}, "is not of the form replicate/epoch/name"),
    ],
)
def test_a_wrong_input_is_a_message_without_a_traceback(
    measure, folder, tmp_path, changes, message
):
    if changes.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    if changes.get("checkpoints") == "DATA":
        changes = {"checkpoints": folder / "data.safetensors"}
    status, errors = measure(**changes)
    assert status != 0
    assert message in errors
    assert not (tmp_path / "spectra.parquet").exists()


def test_weights_that_overflow_stop_the_measurement(measure, folder, tmp_path):
    arrays = read_arrays(folder / "networks.safetensors")
    arrays["1/0/head.bias"] = np.full_like(arrays["1/0/head.bias"], 3e38)
    arrays["1/0/head.weight"] = np.full_like(arrays["1/0/head.weight"], -3e38)
    path = tmp_path / "networks.safetensors"
    write_arrays(arrays, path, Provenance({}))
    status, errors = measure(checkpoints=path)
    assert status == 1
    assert "error: logits of the first samples" in errors
    assert not (tmp_path / "spectra.parquet").exists()


@pytest.mark.parametrize("name", ["prepare_data", "train_model", "measure_curvature"])
def test_every_option_has_help(root, name):
    app = typer.Typer()
    app.command()(load(root, name).main)
    command = typer.main.get_command(app)
    options = [option for option in command.params if option.name != "help"]
    assert len(options) >= 3
    assert [option.name for option in options if not option.help] == []
    assert command.help


def test_a_layer_without_gradient_has_one_row_of_zeros(measure, folder, tmp_path):
    arrays = read_arrays(folder / "networks.safetensors")
    for name, array in arrays.items():
        if name.endswith("layers.0.bias"):
            array[:] = -1e3  # every unit is dead
    path = tmp_path / "networks.safetensors"
    write_arrays(arrays, path, Provenance({}))
    status, errors = measure(checkpoints=path)
    assert status == 0, errors
    table = read_table(tmp_path / "spectra.parquet")
    dead = table[table["layer"] == "layers.0"]
    assert (dead.groupby(["seed", "epoch", "part"])["index"].count() == 1).all()
    assert (dead[["singular_value", "directional_curvature"]] == 0).all(axis=None)
    assert dead[list(RUNGS)].isna().all(axis=None)
    fits = fit_exponents(table, top_k=5, confidence=0.9, resamples=100, seed=0)
    assert set(fits.loc[fits["layer"] == "layers.0", "status"]) == {"no fit"}
