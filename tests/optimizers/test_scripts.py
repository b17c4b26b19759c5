"""The scripts of the race as the pipeline calls them, without the pipeline."""

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import typer

from spectral_laws.artifacts import (
    read_provenance,
    read_table,
    write_arrays,
    write_table,
)
from spectral_laws.optimizers.race import Task, train_method, tune_method
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Method, RaceTraining

SCRIPTS = ["tune_method", "train_method", "train_layer_rates", "measure_responses"]
MODEL = {"architecture": "mlp", "width": 6, "depth": 2, "data": "toy", "training": "toy"}
TRAINING = {"train_size": 33, "validation_size": 12, "epochs": 2, "batch_size": 12}
SGD = {"optimizer": "sgd", "momentum": 0.9, "learning_rates": [0.02, 0.05]}
SGD |= {"weight_decays": [0.0, 0.001]}
NEWTON = SGD | {"optimizer": "spectral_newton", "alpha": "measured", "damping": 0.1}
RESPONSES = {
    "methods": {"sgd": SGD, "newton": NEWTON},
    "responses": {"race": "toy", "samples": 33, "steps": 3, "layers": ["layers.0"]},
}


def arguments(options: dict[str, object]) -> list[str]:
    words = []
    for option, value in options.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        words += [f"--{option.replace('_', '-')}", text]
    return words


def load(root: Path, name: str) -> ModuleType:
    path = root / "workflow" / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path, images, exponents) -> Path:
    """Data and exponents."""
    write_arrays(images.as_arrays(), tmp_path / "data.safetensors", Provenance({}))
    write_table(exponents, tmp_path / "exponents.parquet", Provenance({}))
    return tmp_path


@pytest.fixture
def options(folder):
    """Options of each script, writing tables called as it is."""
    common = {"race_name": "toy", "model_name": "small", "training": TRAINING, "model": MODEL}
    common |= {"data_file": folder / "data.safetensors", "seed": 3}
    kept = {"scratch": folder / "scratch"}
    measured = {"exponents": folder / "exponents.parquet"}

    def of(name, **changes):
        own = {"output": folder / f"{name}.parquet"}
        if name in ("tune_method", "train_method"):
            own |= {"method_name": "mine", "method": SGD, "times": folder / f"{name}_times.parquet"}
        if name == "train_method":
            own |= {"tuning": folder / "tune_method.parquet", "seeds": 2}
        if name == "train_layer_rates":
            rates = {"method": "mine", "exponents": [1.0, -1.0], "random": True}
            own |= {"method": SGD, "layer_rates": rates, "seeds": 2, **measured}
            own |= {"history": folder / "train_method.parquet"}
        own |= {"responses": RESPONSES, **measured} if name == "measure_responses" else kept
        return common | own | changes

    return of


@pytest.fixture
def call(run_script, options):
    """Run a script in this process; returns exit status and standard error."""

    def run(name: str, **changes: object) -> tuple[int, str]:
        done = run_script(name, **options(name, **changes))
        return done.returncode, done.stderr

    return run


def test_the_chain_writes_what_the_functions_return(call, folder, options, images):
    for name in SCRIPTS:
        assert call(name) == (0, "")
        stored = read_provenance(folder / f"{name}.parquet")
        assert (stored["seed"], stored["device"]) == (3, "cpu")
        parameters = stored["parameters"]
        assert parameters["race"] == "toy"
        assert parameters["model_name"] == "small"
        assert parameters["training"] == TRAINING
        assert Model.model_validate_json(json.dumps(parameters["model"])) == Model(**MODEL)
    assert [*(folder / "scratch").iterdir()] == []
    task = Task("toy", Model(**MODEL), "small", images, RaceTraining(**TRAINING), 3)
    method = Method.model_validate_json(json.dumps(SGD))
    tuning = tune_method(task, method, None, name="mine").table
    pd.testing.assert_frame_equal(read_table(folder / "tune_method.parquet"), tuning)
    history = train_method(task, method, tuning, None, name="mine", replicates=range(2)).table
    pd.testing.assert_frame_equal(read_table(folder / "train_method.parquet"), history)
    times = read_table(folder / "train_method_times.parquet")
    assert times[["seed", "epoch"]].values.tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    times = read_table(folder / "tune_method_times.parquet")
    assert list(times) == ["race", "method", "learning_rate", "weight_decay", "seconds"]
    assert len(times) == 3
    assert set(tuning["trainings"]) == {1}
    assert read_provenance(folder / "tune_method.parquet")["parameters"]["seeds"] == 1
    rates = read_table(folder / "train_layer_rates.parquet")
    assert rates["variant"].tolist() == ["none", "b = 1", "inverse", "random"] * 2
    last = history[history["epoch"] == 2]["test_loss"].tolist()
    assert rates.loc[rates["variant"] == "none", "test_loss"].tolist() == last
    assert read_provenance(folder / "train_method.parquet")["parameters"]["seeds"] == 2
    responses = read_table(folder / "measure_responses.parquet")
    assert set(responses["method"]) == {"sgd", "newton"}
    stored = read_provenance(folder / "measure_responses.parquet")["parameters"]["responses"]
    assert stored["responses"] == RESPONSES["responses"]


def test_the_trainings_of_a_candidate_are_an_option(call, folder, images):
    assert call("tune_method", seeds=2) == (0, "")
    assert [*(folder / "scratch").iterdir()] == []
    task = Task("toy", Model(**MODEL), "small", images, RaceTraining(**TRAINING), 3)
    method = Method.model_validate_json(json.dumps(SGD))
    tuning = tune_method(task, method, None, name="mine", replicates=2).table
    assert set(tuning["trainings"]) == {2}
    pd.testing.assert_frame_equal(read_table(folder / "tune_method.parquet"), tuning)
    assert read_provenance(folder / "tune_method.parquet")["parameters"]["seeds"] == 2


def test_a_choice_made_in_another_race_is_not_used(call, folder):
    assert call("tune_method") == (0, "")
    status, errors = call("train_method", race_name="far")
    assert status == 1
    assert "tuning table: 0 choices of method 'mine' in race 'far', not one" in errors
    assert not (folder / "train_method.parquet").exists()


def test_a_measured_exponent_comes_from_the_table(call, folder):
    status, errors = call("tune_method", method=NEWTON)
    assert (status, errors) == (
        1,
        "error: alpha is measured, and there is no table of exponents\n",
    )
    assert not (folder / "tune_method.parquet").exists()
    assert call("tune_method", method=NEWTON, exponents=folder / "exponents.parquet")[0] == 0


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("tune_method", {"device": "tpu"}, "device: must be cpu or cuda, found 'tpu'"),
        ("tune_method", {"data_file": "absent.safetensors"}, "absent.safetensors: no such array"),
        ("tune_method", {"training": TRAINING | {"train_size": 40}}, "need 52 training samples"),
        ("tune_method", {"training": {}}, "train_size: missing"),
        ("tune_method", {"method": SGD | {"damping": -1.0}}, "damping: "),
        (
            "tune_method",
            {"method": SGD | {"learning_rates": [1e30]}},
            "method mine: each of 1 candidates",
        ),
        ("tune_method", {"model": MODEL | {"depth": None}}, "mlp needs depth"),
        ("tune_method", {"seeds": 0}, "Invalid value for '--seeds'"),
        ("train_method", {"tuning": "absent.parquet"}, "absent.parquet: no such table"),
        ("train_method", {"tuning": "EXPONENTS"}, "tuning table: no column chosen, learning_rate"),
        ("train_method", {"seeds": 0}, "Invalid value for '--seeds'"),
        ("train_layer_rates", {"history": "EXPONENTS"}, "history table: no column race, method"),
        ("train_layer_rates", {"exponents": "absent.parquet"}, "absent.parquet: no such table"),
        ("measure_responses", {"exponents": "absent.parquet"}, "absent.parquet: no such table"),
        ("measure_responses", {"model_name": "far"}, "no fitted layer of a trained model 'far'"),
        (
            "measure_responses",
            {"responses": RESPONSES | {"methods": {"sgd": SGD}}},
            "methods: ",
        ),
    ],
)
def test_a_wrong_input_is_a_message_without_a_traceback(call, folder, name, changes, message):
    changes = {
        key: folder / "exponents.parquet" if value == "EXPONENTS" else value
        for key, value in changes.items()
    }
    if name == "train_layer_rates" and "history" not in changes:
        changes["history"] = folder / "exponents.parquet"
    status, errors = call(name, **changes)
    assert status != 0
    assert message in errors
    assert "Traceback" not in errors
    assert not (folder / f"{name}.parquet").exists()


KILLED = """
import os, runpy, signal, sys
from spectral_laws.optimizers import runs
write_table = runs.write_table
def write_then_die(*arguments, **options):
    write_table(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
runs.write_table = write_then_die
sys.argv = {argv!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_a_script_killed_between_two_trainings_goes_on_with_the_next(root, folder, options, call):
    command = [str(root / "workflow" / "scripts" / "tune_method.py")]
    command += arguments(options("tune_method"))
    killed = [sys.executable, "-c", KILLED.format(argv=command)]
    process = subprocess.run(killed, capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    (kept,) = (folder / "scratch").iterdir()
    assert not (folder / "tune_method.parquet").exists()
    seconds = read_table(kept)["seconds"].sum()
    process = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    # Its time tells that the first training was read.
    assert read_table(folder / "tune_method_times.parquet")["seconds"].iloc[0] == seconds
    assert [*(folder / "scratch").iterdir()] == []
    table = read_table(folder / "tune_method.parquet")
    assert call("tune_method", output=folder / "whole.parquet", scratch=folder / "other")[0] == 0
    pd.testing.assert_frame_equal(table, read_table(folder / "whole.parquet"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_option_has_help(root, name):
    app = typer.Typer()
    app.command()(load(root, name).main)
    command = typer.main.get_command(app)
    options_ = [option for option in command.params if option.name != "help"]
    assert len(options_) >= 8
    assert [option.name for option in options_ if not option.help] == []
    assert command.help
