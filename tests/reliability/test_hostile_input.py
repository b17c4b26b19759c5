"""Hostile and broken input: one clear message that names it, nothing half-written.

What is fuzzed stands in ``test_fuzz_readers.py``; archives and images beside their readers, in
``tests/curvature/test_readers.py``; single wrong settings in ``tests/test_config.py``.
"""

import importlib.util
import json
import logging
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import nn

from spectral_laws import cli
from spectral_laws.artifacts import read_arrays, read_table, write_arrays, write_table
from spectral_laws.config import load_config, parse_config
from spectral_laws.curvature.audit.files import TRIANGLE
from spectral_laws.curvature.datasets.load import load_samples
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.fits.layer_tables import require_columns
from spectral_laws.curvature.models.factory import build_model
from spectral_laws.curvature.training.checkpoints import (
    load_checkpoint,
    model_arrays,
    read_networks,
)
from spectral_laws.curvature.training.state import check_scratch
from spectral_laws.curvature.training.train import train_model
from spectral_laws.errors import ConfigError, DataError, NumericalError
from spectral_laws.optimizers import runs
from spectral_laws.optimizers.layer_rates import train_layer_rates
from spectral_laws.optimizers.measured import layer_means
from spectral_laws.optimizers.race import Task, train_method, tune_method
from spectral_laws.optimizers.runs import Choice, run_training
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import parse_settings
from spectral_laws.settings.curvature import Model, Training
from spectral_laws.settings.data import ImageFiles, SyntheticImages
from spectral_laws.settings.layer_names import has_layer
from spectral_laws.settings.optimizers import Method, RaceTraining, RateVariants

MLP = {"architecture": "mlp", "data": "images", "training": "sgd", "width": 6, "depth": 2}
METHOD = {"optimizer": "sgd", "momentum": 0.9, "learning_rates": [0.05], "weight_decays": [0.0]}
RACE = {"train_size": 32, "validation_size": 8, "epochs": 2, "batch_size": 16}


def settings(model, values):
    """Settings as a script gets them."""
    return parse_settings(model, json.dumps(values))


# --- YAML --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("curvature: {models: !!python/tuple [0]}", "could not determine a constructor"),
        ("seed: !mine 3", "could not determine a constructor for the tag '!mine'"),
        ("curvature: !!set {seeds, batch}", "set is not JSON serializable"),
        ("seed: 2020-01-01", "date is not JSON serializable"),
        ("seed: 3\nseed: 3", "key 'seed' is given twice .*line 2"),
        ("curvature: {seeds: 3, seeds: 4}", "key 'seeds' is given twice .*line 1"),
        ("curvature: {<<: {seeds: 3}, <<: {seeds: 4}}", "key '<<' is given twice"),
        ("1: 2", "a key must be a string, found '1'"),
        ("curvature: {models: {null: {}}}", "a key must be a string, found 'null'"),
        ("? [a, b]\n: 3", "a key must be a string"),
        ("a: &a {b: *a}", "Circular reference"),
        ("seed: 010", "010 is another number to other readers of YAML .*line 1"),
        ("seed: 1:30", "1:30 is another number"),
        ("seed: " + "9" * 5000, "Exceeds the limit"),
        ("seed: 3\0", "special characters are not allowed"),
        ("seed: 3\n---\nseed: 4", "expected a single document"),
        ("a: [1", "expected ',' or ']'"),
        ("", "must hold a mapping of keys, found NoneType"),
        ("[seed, 3]", "must hold a mapping of keys, found list"),
        ('curvature: {reference: "a\\0b"}', r"curvature\.reference: a path is .* none of them NUL"),
        (f"curvature: {{reference: {'a' * 256}}}", r"curvature\.reference: a name in a path has"),
        ("curvature: {seeds: 100000000}", r"curvature\.seeds: .*found 100000000"),
        ("recovery: {studies: {quadratc: null}}", r"recovery\.studies\.quadratc: null removes an"),
        ("optimizers: {methods: {nuon: }}", r"optimizers\.methods\.nuon: null removes an"),
    ],
)
def test_hostile_yaml_is_refused_by_file(root, tmp_path, content, message):
    path = tmp_path / "mine.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(root / "config.yaml", path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_anchors_a_byte_order_mark_and_nulls_that_remove_are_fine(root, tmp_path):
    path = tmp_path / "mine.yaml"
    text = "seed: 7\nrecovery: {studies: {gamma_02: null}}\n"
    text += "curvature: {training: {sgd: &s {momentum: 0.5}, adamw_slow: {<<: *s}}}\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    config = load_config(root / "config.yaml", path)
    assert config.seed == 7
    assert "gamma_02" not in config.recovery.studies
    assert config.curvature.training["adamw_slow"].momentum == 0.5


def test_no_number_of_the_configuration_may_be_infinite_or_no_number(root):
    raw = yaml.safe_load((root / "config.yaml").read_text())
    checked = set()

    def numbers(tree, path=()):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if isinstance(value, dict | list):
                yield from numbers(value, (*path, key))
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield tree, key, (*path[:2], *([path[-1]] if isinstance(key, int) else []), key)

    for tree, key, name in [*numbers(raw)]:
        if name in checked:
            continue
        checked.add(name)
        sound = tree[key]
        for bad in (float("nan"), float("inf"), -(10**40)):
            tree[key] = bad
            with pytest.raises(ConfigError):
                parse_config(raw, source="x")
        tree[key] = sound
    assert len(checked) > 60


def test_snakemake_refuses_what_its_own_reading_lets_through(make_project, tmp_path):
    project, path = make_project(tmp_path), tmp_path / "mine.yaml"
    path.write_text("seed: 3\nseed: 4")
    output = project.snakemake("--configfile", str(path), "--dry-run", check=False)
    assert f"{path}: not plain YAML (key 'seed' is given twice" in output
    assert "Traceback" not in output
    assert len(output.strip().splitlines()) <= 6
    assert not (project.folder / "results").exists()


# --- Settings that only the whole can check ----------------------------------------------------


@pytest.fixture
def raw(root):
    return yaml.safe_load((root / "config.yaml").read_text())


def test_a_batch_of_one_under_batch_norm_is_refused(raw):
    raw["curvature"]["training"]["sgd"]["batch_size"] = 2
    raw["curvature"]["data"]["images"]["train_size"] = 799
    raw["optimizers"]["races"]["images"]["validation_size"] = 299
    with pytest.raises(ConfigError, match=r"leaves a batch of one sample of data\.images\.train"):
        parse_config(raw, source="x")
    raw["curvature"]["training"]["sgd"]["batch_size"] = 3  # 267 batches of 2 or 3
    race = raw["optimizers"]["races"]["images"]
    raw["optimizers"]["responses"]["samples"] = 400
    race |= {"train_size": 499, "batch_size": 2}
    with pytest.raises(ConfigError, match=r"races\.images: batch_size 2 leaves a batch of one"):
        parse_config(raw, source="x")
    race["train_size"] = 498
    assert parse_config(raw, source="x").optimizers.races["images"].batch_size == 2


def test_the_functions_refuse_a_batch_of_one_too(tmp_path):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.BatchNorm1d(5), nn.Linear(5, 10))
    training = {"optimizer": "sgd", "max_epochs": 1, "batch_size": 2, "learning_rate": 0.1}
    training |= {"momentum": 0.9, "weight_decay": 0.0, "label_smoothing": 0.0, "target_loss": 0.0}
    images = digits(33)
    with pytest.raises(DataError, match="batch_size 2 leaves a batch of one of 33 training"):
        train_model(model, images, settings(Training, training), seed=1)
    race = settings(RaceTraining, RACE | {"train_size": 33, "batch_size": 2})
    with pytest.raises(DataError, match="batch_size 2 leaves a batch of one of 33 training"):
        run_training(model, images, race, Choice(settings(Method, METHOD), 0.1, 0.0), seed=1)
    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize("layer", ["layer4.1.conv3", "layer5.0.conv1", "layers.0", "bn1", ""])
def test_a_layer_that_the_network_of_the_responses_lacks_is_refused_at_once(raw, layer):
    raw["optimizers"]["responses"]["layers"] = ["conv1", layer]
    with pytest.raises(ConfigError, match=rf"'resnet18' has no layer '{layer}' with a matrix"):
        parse_config(raw, source="x")


@pytest.mark.parametrize(
    "options",
    [
        {"architecture": "resnet18"},
        {"architecture": "resnet18", "separable": True},
        {"architecture": "resnet50"},
        {"architecture": "vgg11"},
        {"architecture": "vgg16", "normalisation": "none"},
        {"architecture": "mlp", "depth": 3},
        {"architecture": "vit_tiny", "depth": 2, "heads": 2, "patch": 4},
        {"architecture": "gpt2", "depth": 2, "heads": 2},
    ],
)
def test_known_layer_names_are_those_of_the_networks(options):
    model = settings(Model, {"data": "x", "training": "x", "width": 4} | options)
    images, labels = np.zeros((2, 3, 16, 16), np.float32), np.zeros(2, np.int64)
    samples = Samples(images, labels, images, labels, 10)
    if model.architecture == "gpt2":
        tokens = np.zeros((2, 8), np.int64)
        samples = Samples(tokens, tokens, tokens, tokens, 10, 10)
    modules = dict(build_model(model, samples, seed=1).named_modules())
    weights = {name: getattr(module, "weight", None) for name, module in modules.items()}
    matrices = {name for name, weight in weights.items() if weight is not None and weight.ndim > 1}
    assert {name for name in matrices if not has_layer(model, name)} == set()
    if not model.architecture.startswith("vgg"):  # whose numbers depend on the images
        others = modules.keys() - matrices
        others |= {f"{name}.{i}" for name in matrices for i in range(3)} - matrices
        others |= {name.replace("1", "9") for name in matrices} - matrices
        assert {name for name in others if has_layer(model, name)} == set()


def test_a_huge_standard_deviation_is_refused(raw):
    raw["curvature"]["data"]["classes_2"]["noise"] = 1e200
    with pytest.raises(ConfigError, match=r"classes_2\.noise: .*found 1e\+200"):
        parse_config(raw, source="x")
    largest = {"dataset": "synthetic_images", "n_classes": 2, "channels": 1, "noise": 1e6}
    largest |= {"image_size": 8, "train_size": 32, "test_size": 32}
    assert load_samples(settings(SyntheticImages, largest), seed=1).train_inputs.std() > 0.9


# --- Checkpoints -------------------------------------------------------------------------------


@pytest.fixture
def network():
    samples = digits(32)
    return build_model(settings(Model, MLP), samples, seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v.bfloat16() for k, v in t.items()}, "head.bias|arrays that numpy cannot"),
        (lambda t: {k: v.to(torch.float8_e4m3fn) for k, v in t.items()}, "numpy cannot|float8"),
        (lambda t: {k: v.half() for k, v in t.items()}, "float16 .*expected float32"),
        (lambda t: {k: v.to(torch.int64) for k, v in t.items()}, "int64 .*expected float32"),
        (lambda t: {k: v.to(torch.uint16) for k, v in t.items()}, "uint16 .*expected float32"),
        (lambda t: {k: v.to(torch.complex64) for k, v in t.items()}, "complex|numpy cannot"),
        (lambda t: {}, "head.weight: missing"),
        (lambda t: t | {"head.bias": t["head.bias"] * torch.nan}, "'head.bias': 10 of 10 values"),
    ],
)
def test_weights_of_another_kind_are_refused_by_file(network, tmp_path, change, message):
    path = tmp_path / "weights.safetensors"
    save_file(change({name: t.clone() for name, t in network.state_dict().items()}), path)
    before = model_arrays(network)
    with pytest.raises((DataError, NumericalError), match=message) as caught:
        load_checkpoint(network, path)
    assert str(path) in str(caught.value)
    for name, array in model_arrays(network).items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "holds no network"),
        ({"0/0": 1.0}, "'0/0' is not of the form"),
        ({"0/1/": 1.0}, "'0/1/' is not of the form"),
        ({"-1/0/w": 1.0}, "is not of the form"),
        ({"01/0/w": 1.0}, "is not of the form"),
        ({"٣/0/w": 1.0}, "is not of the form"),
        ({"9" * 5000 + "/0/w": 1.0}, "is not of the form"),
        ({"0/0/w": float("inf")}, "array '0/0/w': 1 of 1 values are NaN or infinite"),
    ],
)
def test_files_that_hold_no_networks_are_refused(tmp_path, arrays, message):
    path = tmp_path / "networks.safetensors"
    save_file({name: torch.tensor([value]) for name, value in arrays.items()}, path)
    with pytest.raises((DataError, NumericalError), match=message) as caught:
        read_networks(path)
    assert str(path) in str(caught.value)


# --- The race ----------------------------------------------------------------------------------


def digits(train_size: int) -> Samples:
    """A few digits of 8 x 8 pixels."""
    sizes = {"image_size": 8, "train_size": 64, "test_size": 32}
    samples = load_samples(settings(ImageFiles, {"dataset": "digits", **sizes}), seed=1)
    inputs, targets = samples.train_inputs[:train_size], samples.train_targets[:train_size]
    return Samples(inputs, targets, samples.test_inputs, samples.test_targets, 10)


@pytest.fixture
def task():
    model = settings(Model, MLP)
    return Task("toy", model, "small", digits(64), settings(RaceTraining, RACE), seed=3)


@pytest.fixture
def exponents():
    layers = ["layers.0", "layers.1", "head"]
    table = {"model": "small", "layer": layers, "final": True, "status": "fit"}
    return pd.DataFrame(table | {"alpha": [1.0, 1.5, 2.0], "s": [0.5, 1.0, 1.5]})


def test_exponents_of_another_network_are_refused_before_any_training(task, exponents, monkeypatch):
    monkeypatch.setattr(Task, "run", None)
    foreign = exponents.assign(layer=["layers.0", "layer1.0.conv1", "head"])
    message = "exponents table: 'layer1.0.conv1' is no layer .* of the network 'small'"
    newton = METHOD | {"optimizer": "spectral_newton", "alpha": "measured", "damping": 0.1}
    newton = settings(Method, newton)
    with pytest.raises(DataError, match=message):
        tune_method(task, newton, foreign, name="newton")
    tuning = {"race": "toy", "method": "newton", "learning_rate": [0.1], "weight_decay": 0.0}
    tuning = pd.DataFrame(tuning | {"chosen": True})
    with pytest.raises(DataError, match=message):
        train_method(task, newton, tuning, foreign, name="newton", replicates=[0])
    rates = RateVariants(method="sgd", exponents=(1.0,), random=False)
    with pytest.raises(DataError, match=message):
        train_layer_rates(task, settings(Method, METHOD), tuning, foreign, rates, replicates=[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": [1.0, np.nan, 2.0]}, "a fitted layer of model 'small' has no alpha"),
        ({"alpha": [1.0, np.inf, 2.0]}, "a fitted layer of model 'small' has no alpha"),
        ({"alpha": "steep"}, "column alpha holds something else than numbers"),
        ({"final": "False"}, "column final holds something else than true and false"),
    ],
)
def test_exponents_that_are_none_do_not_reach_the_race(exponents, changes, message):
    with pytest.raises(DataError, match=message):
        layer_means(exponents.assign(**changes), "small", "alpha")


def test_a_history_that_lacks_an_epoch_gives_no_result(task, exponents):
    row = {"race": "toy", "method": "sgd", "seed": 0, "epoch": [1], "learning_rate": 0.1}
    row |= {"weight_decay": 0.0, "test_loss": 1.0, "test_accuracy": 0.5, "diverged": False}
    rates = RateVariants(method="sgd", exponents=(1.0,), random=False)
    with pytest.raises(DataError, match="training 0 of 'sgd' in race 'toy' has not epochs 1 to 2"):
        train_layer_rates(
            task, settings(Method, METHOD), pd.DataFrame(row), exponents, rates, replicates=[0]
        )


def test_a_network_that_cannot_read_the_samples_is_named(task):
    gpt2 = {"architecture": "gpt2", "data": "x", "training": "x", "width": 4, "depth": 1}
    gpt2 = settings(Model, gpt2 | {"heads": 1})
    other = Task("toy", gpt2, "small", task.samples, task.training, seed=3)
    with pytest.raises(DataError, match="gpt2 cannot read the samples of 'toy'"):
        tune_method(other, settings(Method, METHOD), None, name="sgd")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.drop(columns="test_loss"),
        lambda t: t.assign(more=1),
        lambda t: t.iloc[:1],
        lambda t: pd.concat([t, t]),
        lambda t: t.iloc[::-1],
        lambda t: t.assign(test_accuracy="high"),
        lambda t: t.assign(epoch=[2, 3]),
        lambda t: pd.DataFrame({"x": [1]}),
    ],
)
def test_a_foreign_table_in_scratch_is_reported_and_trained_again(
    task, tmp_path, monkeypatch, caplog, change
):
    table = pd.DataFrame({"epoch": [1, 2], "train_loss": [1.0, 0.5], "test_loss": [1.0, 0.5]})
    table = table.assign(test_accuracy=[0.4, 0.5], diverged=False, seconds=0.1)
    monkeypatch.setattr(runs, "_train", lambda *_, **__: table)

    def run():
        choice = Choice(settings(Method, METHOD), 0.05, 0.0)
        network = task.network(1)
        return run_training(network, task.samples, task.training, choice, seed=1, scratch=tmp_path)

    _, kept = run()
    write_table(change(table), kept, Provenance({}))
    with caplog.at_level(logging.WARNING):
        again, _ = run()
    assert f"saved training not used, it is trained again: {kept}" in caplog.text
    pd.testing.assert_frame_equal(again, table)
    pd.testing.assert_frame_equal(read_table(kept), table)


# --- Scripts -----------------------------------------------------------------------------------


@pytest.fixture
def call(root, monkeypatch, capsys):
    """Run a script in this process; its exit status and standard error."""

    def run(name: str, *words: object, **options: object) -> tuple[int, str]:
        arguments = [str(word) for word in words]
        for option, value in options.items():
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            arguments += [f"--{option.replace('_', '-')}", text]
        path = root / "workflow" / "scripts" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.run(module.main)
        return caught.value.code, capsys.readouterr().err

    return run


@pytest.fixture
def train(call, tmp_path):
    """Run train_model on digits."""
    write_arrays(digits(40).as_arrays(), tmp_path / "data.safetensors", Provenance({}))
    training = {"optimizer": "sgd", "max_epochs": 1, "batch_size": 16, "learning_rate": 0.1}
    training |= {"momentum": 0.9, "weight_decay": 0.0, "label_smoothing": 0.0, "target_loss": 0.0}
    options = {"model": MLP, "training": training, "model_name": "small"}
    options |= {"data_file": tmp_path / "data.safetensors", "scratch": tmp_path / "scratch"}
    options |= {"checkpoints": tmp_path / "out.safetensors", "history": tmp_path / "out.parquet"}
    return lambda **changes: call("train_model", **options | changes)


def assert_refused(result: tuple[int, str], message: str, folder: Path) -> None:
    status, errors = result
    assert status != 0
    assert message in errors
    assert "Traceback" not in errors
    assert not [*folder.glob("out*"), *folder.glob(".out*")]


def test_a_range_of_trainings_without_one_is_named(train, tmp_path):
    assert_refused(train(first=3, last=1), "error: --last 1 is below --first 3", tmp_path)


def test_a_scratch_that_cannot_be_written_stops_before_the_training(train, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr("spectral_laws.curvature.training.train._train_epoch", None)
    for scratch in (tmp_path / "file", tmp_path / "file" / "below"):
        assert_refused(train(scratch=scratch), f"{scratch}: scratch cannot be written", tmp_path)


def test_a_read_only_scratch_is_named(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(DataError, match=r"scratch cannot be written .Read-only file system"):
        check_scratch(tmp_path)


def test_given_weights_are_refused_before_anything_is_written(train, tmp_path, network):
    path = tmp_path / "weights.safetensors"
    for tensors, message in (
        ({k: v.bfloat16() for k, v in network.state_dict().items()}, str(path)),
        ({}, f"{path}: does not fit the model"),
        ({k: v * torch.nan for k, v in network.state_dict().items()}, f"{path}: array "),
    ):
        save_file(tensors, path)
        assert_refused(train(model=MLP | {"weights": str(path)}), message, tmp_path)


def test_pixels_that_are_no_numbers_name_the_file(train, tmp_path):
    path = tmp_path / "data.safetensors"
    arrays = {name: torch.from_numpy(array) for name, array in read_arrays(path).items()}
    arrays["train_inputs"][0, 0, 0, 0] = torch.nan
    save_file(arrays, path)
    assert_refused(train(), f"error: {path}: train_inputs: 1 of 2560 values are NaN", tmp_path)


@pytest.mark.parametrize("value", ["1", "nan", "-0.1", "much"])
def test_a_share_out_of_range_is_named(call, tmp_path, value):
    measurement = {"batch_size": 40, "top_k": 5, "chunk_size": 16, "method": "auto"}
    options = {"model": MLP, "measurement": measurement, "model_name": "small", "data_file": "x"}
    options |= {"checkpoints": "x", "spectra": tmp_path / "out", "factors": tmp_path / "out2"}
    result = call("measure_curvature", label_smoothing=value, **options)
    assert_refused(result, f"error: {value} is no number from 0 on below 1", tmp_path)


def test_tables_that_are_no_parts_of_one_are_not_collected(call, tmp_path):
    first = pd.DataFrame({"race": ["a"], "method": ["sgd"], "seed": 0, "epoch": 1, "seconds": 0.5})
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    write_table(first, paths[0], Provenance({}))
    for other, message in (
        (first.rename(columns={"epoch": "c"}), "no column epoch"),
        (first.assign(more=1), "column more is not in its schema"),
        (first.assign(seconds="x"), "column seconds is str, not float64"),
    ):
        write_table(other, paths[1], Provenance({}))
        options = {"schema": "optimizers/race_times", "output": tmp_path / "out.parquet"}
        result = call("collect_tables", *paths, **options)
        assert_refused(result, f"{paths[1]}: optimizers/race_times table: {message}", tmp_path)
    result = call("collect_tables", *paths, schema="unknown", output=tmp_path / "out.parquet")
    assert_refused(result, "no schema of a table 'unknown'; there are recovery/metrics", tmp_path)


def test_experiments_of_unknown_models_or_data_are_named(call, tmp_path):
    data = {"dataset": "digits", "image_size": 8, "train_size": 64, "test_size": 32}
    experiments = {"depth": {"over": "depth", "models": ["small", "deep"]}}
    for models, known, message in (
        ({"small": MLP}, {"images": data}, "experiments.depth: 'deep' is none of ['small']"),
        ({"small": MLP, "deep": MLP}, {}, "models.small.data: 'images' is none of []"),
    ):
        comparison = {"experiments": experiments, "models": models, "data": known}
        options = {"comparison": comparison, "exponents": "x", "decomposition": "x"}
        result = call("compare_models", output=tmp_path / "out.parquet", **options)
        assert_refused(result, message, tmp_path)


def test_an_authors_file_without_rows_is_named(call, tmp_path):
    (tmp_path / TRIANGLE).write_text("[]")
    intervals = {"confidence": 0.95, "resamples": 100}
    options = {"folder": tmp_path, "intervals": intervals, "seed": 1}
    options |= {"output": tmp_path / "out.parquet", "markdown": tmp_path / "out.md"}
    result = call("audit_reference", **options)
    assert_refused(result, f"error: {tmp_path / TRIANGLE}: holds no experiment", tmp_path)


SPECTRUM = pd.DataFrame({"model": ["mlp"], "layer_index": [0], "singular_value": [0.5]})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (SPECTRUM.drop(columns="layer_index"), "no column layer_index"),
        (
            SPECTRUM.assign(layer_index="first"),
            "column layer_index holds something else than whole",
        ),
        (SPECTRUM.assign(layer_index=0.5), "column layer_index holds something else than whole"),
        (SPECTRUM.assign(layer_index=-1), "column layer_index has a negative number"),
        (SPECTRUM.assign(singular_value="x"), "column singular_value holds something else than"),
    ],
)
def test_tables_of_another_kind_name_the_column(table, message):
    require_columns(SPECTRUM, [*SPECTRUM], name="spectra")
    with pytest.raises(DataError, match=f"spectra table: {message}"):
        require_columns(table, [*SPECTRUM], name="spectra")


@pytest.mark.parametrize("name", ["fit_exponents", "fit_windows", "fit_independence", "fit_ladder"])
def test_fits_of_a_table_without_layers_name_the_column(call, tmp_path, name):
    path = tmp_path / "spectra.parquet"
    write_table(SPECTRUM.assign(final=True, part="whole"), path, Provenance({}))
    options = {"spectra": path, "top_k": 5, "seed": 1}
    if name == "fit_independence":
        options["permutations"] = 2
    else:
        options["intervals"] = {"confidence": 0.95, "resamples": 100}
    outputs = ["ladder", "decomposition", "factor_models"] if name == "fit_ladder" else ["output"]
    options |= {output: tmp_path / f"out_{output}.parquet" for output in outputs}
    if name == "fit_ladder":
        options["factors"] = path
    assert_refused(call(name, **options), "error: spectra table: no column ", tmp_path)
