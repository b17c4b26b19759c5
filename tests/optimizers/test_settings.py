"""What is wrong in the settings of the race is named."""

import copy

import pytest
import yaml

from spectral_laws.config import parse_config
from spectral_laws.errors import ConfigError
from spectral_laws.settings.optimizers import Optimizers, Race, RaceTraining

RACE = {"model": "m", "train_size": 20, "validation_size": 5, "epochs": 2, "batch_size": 4}


@pytest.fixture(scope="module")
def raw(root):
    return yaml.safe_load((root / "config.yaml").read_text())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("methods.sgd.optimizer", "lion", r"methods\.sgd\.optimizer: .*found 'lion'"),
        ("methods.sgd.momentum", 1.0, r"methods\.sgd\.momentum: .*found 1"),
        ("methods.sgd.alpha", 1.0, r"methods\.sgd: alpha goes with spectral_newton, which needs"),
        ("methods.spectral_newton_1.alpha", None, "alpha goes with spectral_newton, which needs"),
        ("methods.spectral_newton_1.alpha", -1.0, r"spectral_newton_1\.alpha"),
        ("methods.spectral_newton_1.alpha", "mesured", r"spectral_newton_1\.alpha"),
        ("methods.spectral_newton_1.alpha", float("inf"), r"spectral_newton_1\.alpha"),
        ("methods.spectral_newton_1.damping", None, "spectral_newton needs damping"),
        ("methods.spectral_newton_1.damping", 0.0, r"spectral_newton_1\.damping: .*found 0"),
        ("methods.adamw.damping", 0.1, r"methods\.adamw: adamw has no damping"),
        ("methods.sgd.learning_rates", [], r"sgd\.learning_rates: "),
        ("methods.sgd.learning_rates", [0.1, 0.1, 0.3], "learning_rates: has a value twice"),
        ("methods.sgd.learning_rates", [0.1, 0.0, 0.3], r"sgd\.learning_rates\.1: .*found 0"),
        ("methods.sgd.weight_decays", [0.0, 0.0], "weight_decays: has a value twice, found .0.0"),
        ("methods.sgd.weight_decays", [0.0, -1.0], r"sgd\.weight_decays\.1: .*found -1"),
        (
            "methods.sgd.weight_decays",
            [0.0],
            "methods must have as many tuning trainings as each other: .*'sgd': 5, 'adamw': 6",
        ),
        ("methods.sgd.nesterov", True, r"methods\.sgd\.nesterov: unknown key"),
        ("methods.SGD", {}, r"methods\.SGD"),
        ("races", {}, r"optimizers\.races: "),
        ("races.images.batch_size", 501, "batch_size 501 is above train_size 500"),
        ("races.images.batch_size", 1, r"images\.batch_size: .*found 1"),
        ("races.images.validation_size", 0, r"images\.validation_size: .*found 0"),
        ("races.images.epochs", 0, r"images\.epochs: .*found 0"),
        ("races.images.seeds", 0, r"images\.seeds: .*found 0"),
        ("races.images.tuning_seeds", 0, r"images\.tuning_seeds: .*found 0"),
        ("races.images.train_size", 1, r"images\.train_size: .*found 1"),
        ("races.images.model", "lpm", r"races\.images\.model: 'lpm' is none of .'resnet18'"),
        ("layer_rates.races", ["lpm"], r"layer_rates\.races: 'lpm' is none of \['images', 'text'"),
        ("layer_rates.races", ["images", "images"], "races: has a value twice"),
        ("layer_rates.races", [], r"layer_rates\.races: "),
        ("layer_rates.method", "lpm", r"layer_rates\.method: 'lpm' is none of"),
        ("layer_rates.method", "muon", "rates per layer go with sgd and adamw, not muon"),
        ("layer_rates.exponents", [1.0, 0.0], "exponents holds 0, which is the training without"),
        ("layer_rates.exponents", [1.0, 1.0], r"exponents: has a value twice, found .1.0, 1.0.$"),
        ("layer_rates.exponents", [-1.0], "exponents needs a positive one"),
        ("layer_rates.exponents", [9.0], r"layer_rates\.exponents\.0: .*found 9"),
        ("layer_rates.exponents", [], r"layer_rates\.exponents: "),
        ("layer_rates.random", 2, r"layer_rates\.random: .*found 2"),
        ("responses.race", "lpm", r"responses\.race: 'lpm' is none of"),
        ("responses.samples", 1, r"responses\.samples: .*found 1"),
        ("responses.samples", 501, "responses.samples is above the race's train_size"),
        ("methods.adamw", None, r"methods\.adamw is missing; B14 and the figures compare with it"),
        ("responses.steps", 0, r"responses\.steps: .*found 0"),
        ("responses.layers", [], r"responses\.layers: "),
        ("responses", None, r"optimizers\.responses: "),
    ],
)
def test_a_wrong_value_is_named(raw, path, value, message):
    broken = copy.deepcopy(raw)
    *parents, key = path.split(".")
    section = broken["optimizers"]
    for parent in parents:
        section = section[parent]
    section[key] = value
    with pytest.raises(ConfigError, match=message) as caught:
        parse_config(broken, source="my.yaml")
    assert str(caught.value).startswith("my.yaml: ")
    assert len(str(caught.value).splitlines()) <= 5


def test_races_need_models_that_are_trained_and_samples_enough(raw):
    broken = copy.deepcopy(raw)
    broken["curvature"]["models"]["resnet18"].pop("checkpoints", None)
    broken["curvature"]["models"]["resnet18"]["weights"] = "x.safetensors"
    with pytest.raises(ConfigError, match=r"races\.images\.model: 'resnet18' has weights, it is"):
        parse_config(broken, source="x")
    broken = copy.deepcopy(raw)
    held = broken["curvature"]["data"]["images"]["train_size"]
    broken["optimizers"]["races"]["images"]["validation_size"] = held - 499
    with pytest.raises(
        ConfigError,
        match=rf"train_size 500 and validation_size {held - 499} are more than "
        rf"curvature\.data\.images\.train_size {held}",
    ):
        parse_config(broken, source="x")


@pytest.mark.parametrize("path", ["races.images.tuning_seeds", "responses.samples"])
def test_a_number_that_is_left_out_is_named(raw, path):
    broken = copy.deepcopy(raw)
    *parents, key = path.split(".")
    section = broken["optimizers"]
    for parent in parents:
        section = section[parent]
    del section[key]
    with pytest.raises(ConfigError, match=rf"optimizers\.{path}: missing"):
        parse_config(broken, source="x")


def test_the_samples_of_the_gradient_are_those_of_its_own_race(raw):
    changed = copy.deepcopy(raw)
    text = changed["optimizers"]["races"]["text"]["train_size"]
    changed["optimizers"]["responses"] |= {
        "race": "text",
        "samples": text + 1,
        "layers": ["transformer.h.0.mlp.c_fc"],
    }
    with pytest.raises(ConfigError, match="samples is above the race's train_size"):
        parse_config(changed, source="x")
    changed["optimizers"]["responses"]["samples"] = text
    assert parse_config(changed, source="x").optimizers.responses.samples == text


def test_null_removes_a_race_or_a_method(raw):
    changed = copy.deepcopy(raw)
    changed["optimizers"]["races"]["text"] = None
    changed["optimizers"]["methods"]["muon"] = None
    optimizers = parse_config(changed, source="x").optimizers
    assert [*optimizers.races] == ["images"]
    assert "muon" not in optimizers.methods
    assert "soap" in optimizers.methods


def test_a_method_is_tuned_on_its_learning_rates_then_on_its_weight_decays(make_method):
    method = make_method("adamw", learning_rates=[0.1, 0.2, 0.3], weight_decays=[0.0, 0.5])
    assert method.n_tuned == 4
    assert make_method("adamw").n_tuned == 1


def test_a_race_gives_its_trainings_all_but_its_name_and_seeds():
    race = Race(**RACE, seeds=3, tuning_seeds=2)
    assert race.training == RaceTraining(**{k: v for k, v in RACE.items() if k != "model"})
    assert {*Race.model_fields} - {*RaceTraining.model_fields} == {
        *("model", "seeds", "tuning_seeds")
    }


def test_settings_round_trip_through_json(raw):
    optimizers = parse_config(raw, source="x").optimizers
    assert Optimizers.model_validate_json(optimizers.model_dump_json()) == optimizers
