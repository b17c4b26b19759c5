"""The scripts as the pipeline calls them, without the pipeline."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
import typer

from spectral_laws import cli
from spectral_laws.artifacts import (
    Provenance,
    read_arrays,
    read_provenance,
    read_table,
    write_arrays,
)
from spectral_laws.curvature.datasets import ImageData

DATA = {"dataset": "digits", "folder": None, "image_size": 8, "train_size": 64, "test_size": 32}
MODEL = {"architecture": "mlp", "width": 12, "depth": 1}
TRAINING = {
    "max_epochs": 2,
    "batch_size": 16,
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "target_loss": 1e-6,
}
MEASUREMENT = {"batch_size": 40, "top_k": 5, "chunk_size": 16, "method": "auto"}


def run(root: Path, name: str, **options: object) -> subprocess.CompletedProcess[str]:
    script = root / "workflow" / "scripts" / f"{name}.py"
    command = [sys.executable, str(script), *arguments(options)]
    return subprocess.run(command, capture_output=True, text=True)


def load(root: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, root / "workflow" / "scripts" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(options: dict[str, object]) -> list[str]:
    words = []
    for option, value in options.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        words += [f"--{option.replace('_', '-')}", text]
    return words


@pytest.fixture
def measure(root, folder, tmp_path, monkeypatch, capsys):
    """Run measure_curvature in this process; returns exit status and standard error."""
    base = {
        "model_name": "small",
        "model": MODEL,
        "measurement": MEASUREMENT,
        "data_file": folder / "data.safetensors",
        "checkpoint": folder / "weights.safetensors",
        "replicate": 1,
        "seed": 5,
        "output": tmp_path / "spectra.parquet",
    }

    def call(**changes: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["measure_curvature", *arguments(base | changes)])
        with pytest.raises(SystemExit) as caught:
            cli.run(load(root, "measure_curvature").main)
        return caught.value.code, capsys.readouterr().err

    return call


@pytest.fixture(scope="module")
def folder(root, tmp_path_factory) -> Path:
    """The whole chain: data, one trained network, its spectra."""
    out = tmp_path_factory.mktemp("chain")
    place = {"model_name": "small", "model": MODEL, "replicate": 1, "seed": 5, "device": "cpu"}
    place |= {"data_file": out / "data.safetensors", "checkpoint": out / "weights.safetensors"}
    steps = [
        run(root, "prepare_data", data=DATA, seed=5, output=place["data_file"]),
        run(
            root,
            "train_model",
            training=TRAINING,
            history=out / "history.parquet",
            scratch=out / "scratch",
            **place,
        ),
        run(
            root,
            "measure_curvature",
            measurement=MEASUREMENT,
            output=out / "spectra.parquet",
            **place,
        ),
    ]
    for step in steps:
        assert step.returncode == 0, step.stderr
    assert "epochs: 2/2" in steps[1].stderr
    return out


def test_prepare_data_writes_the_arrays(folder):
    data = ImageData.read(folder / "data.safetensors")
    assert data.train_images.shape == (64, 1, 8, 8)
    assert data.test_labels.shape == (32,)
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
    assert history[["model", "seed", "epoch"]].values.tolist() == [["small", 1, 1], ["small", 1, 2]]
    assert read_arrays(folder / "weights.safetensors")["head.weight"].shape == (10, 12)
    assert list((folder / "scratch").iterdir()) == []


def test_measure_curvature_writes_the_tidy_table(folder):
    table = read_table(folder / "spectra.parquet")
    assert list(table) == [
        "model",
        "architecture",
        "seed",
        "layer_index",
        "layer",
        "kind",
        "n_rows",
        "n_columns",
        "index",
        "singular_value",
        "directional_curvature",
        "method",
        "n_samples",
        "train_loss",
        "n_below_rank",
    ]
    layers = table.groupby("layer_index").first()
    assert layers["layer"].tolist() == ["layers.0", "head"]
    assert layers["kind"].tolist() == ["linear", "head"]
    assert layers[["n_rows", "n_columns"]].values.tolist() == [[12, 64], [10, 12]]
    assert table["index"].tolist() == [1, 2, 3, 4, 5] * 2
    constant = table[["model", "architecture", "seed", "method", "n_samples"]].drop_duplicates()
    assert constant.values.tolist() == [["small", "mlp", 1, "gauss_newton", 40]]
    assert (table["train_loss"] == table["train_loss"][0]).all()
    assert (table["n_below_rank"] == 0).all()
    assert (table["directional_curvature"] > 0).all()
    assert read_provenance(folder / "spectra.parquet")["parameters"]["measurement"] == MEASUREMENT


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
        ({"model": {"architecture": "mlp"}}, "width: missing"),
        ({"measurement": MEASUREMENT | {"batch_size": 65}}, "measurement.batch_size: 65"),
        ({"data_file": "absent.safetensors"}, "absent.safetensors: no such array file"),
        ({"checkpoint": "absent.safetensors"}, "absent.safetensors: no such array file"),
        ({"checkpoint": "DATA"}, "does not fit the model"),
    ],
)
def test_a_wrong_input_is_a_message_without_a_traceback(
    measure, folder, tmp_path, changes, message
):
    if changes.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    if changes.get("checkpoint") == "DATA":
        changes = {"checkpoint": folder / "data.safetensors"}
    status, errors = measure(**changes)
    assert status != 0
    assert message in errors
    assert not (tmp_path / "spectra.parquet").exists()


def test_weights_that_overflow_stop_the_measurement(measure, folder, tmp_path):
    arrays = read_arrays(folder / "weights.safetensors")
    arrays["head.bias"] = np.full_like(arrays["head.bias"], 3e38)
    arrays["head.weight"] = np.full_like(arrays["head.weight"], -3e38)
    path = tmp_path / "weights.safetensors"
    write_arrays(arrays, path, Provenance({}))
    status, errors = measure(checkpoint=path)
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
