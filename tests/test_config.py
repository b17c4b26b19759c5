import copy
import importlib.util
import json

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.config import load_config, load_preset, merge, parse_config
from spectral_laws.errors import ConfigError
from spectral_laws.settings.base import parse_settings
from spectral_laws.settings.curvature import Measurement
from spectral_laws.settings.recovery import SampleExponents


@pytest.fixture(scope="module")
def raw(root):
    return yaml.safe_load((root / "config.yaml").read_text())


@pytest.mark.parametrize("preset", ["laptop", "smoke", "paper"])
def test_every_preset_is_valid_and_called_as_its_file(root, preset):
    assert load_preset(preset, root).preset == preset


def test_overlays_hold_only_what_differs(root):
    base = load_config(root / "config.yaml").model_dump(mode="json")
    for path in (root / "config").glob("*.yaml"):
        for keys, value in _leaves(yaml.safe_load(path.read_text())):
            inherited = base
            for key in keys:
                inherited = inherited.get(key, {})  # an entry of its own is no repetition
            assert inherited != value, f"{path.name}: {'.'.join(keys)} repeats config.yaml"


@pytest.fixture(scope="module")
def schema(root):
    """The JSON schema that editors read, which is that of the models."""
    path = root / "workflow" / "update_docs.py"
    spec = importlib.util.spec_from_file_location("update_docs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    schema = json.loads((root / module.SCHEMA).read_text())
    assert schema == module.config_schema(), "run workflow/update_docs.py"
    return schema


def test_every_configuration_file_names_the_schema_and_fits_it(root, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    for path in (root / "config.yaml", *(root / "config").glob("*.yaml")):
        text = path.read_text()
        begin, _, name = text.splitlines()[0].partition("$schema=")
        assert begin == "# yaml-language-server: "
        assert json.loads((path.parent / name).read_text()) == schema
        jsonschema.validate(yaml.safe_load(text), schema)


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        ("curvature: {models: {mlp: null}, data: {images: {train_size: 64}}}", True),
        ("curvature: {training: {sgd: null}}", False),
        ("sede: 1", False),
        ("curvature: {models: {mlp: {widht: 3}}}", False),
        ("curvature: {models: {Mlp: {width: 3}}}", False),
        ("curvature: {data: {images: {dataset: digits, vocabulary: 9}}}", False),
        ("recovery: {studies: {quadratic: {gamma: -1}}}", False),
        ("optimizers: {methods: {sgd: {learning_rates: [1e-4]}}}", False),  # a string in YAML
    ],
)
def test_the_schema_takes_overlays_and_refuses_what_no_preset_may_hold(schema, content, fits):
    assert jsonschema.Draft202012Validator(schema).is_valid(yaml.safe_load(content)) == fits


def test_every_key_of_the_default_preset_has_a_comment(root):
    # A key with children may be explained by them; a leaf is explained on its own line the
    # first time that it appears.
    seen = set()
    for line in (root / "config.yaml").read_text().splitlines():
        key, _, rest = line.strip().partition(":")
        if line.strip().startswith("#") or not rest.strip() or key in seen:
            continue
        seen.add(key)
        assert "#" in rest, f"config.yaml: {key} has no comment"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sede", 1, "sede: unknown key"),
        ("seed", "1", "seed: .*found '1'"),
        ("seed", -1, "seed: .*found -1"),
        ("preset", "Big Run", "preset: "),
        ("device", "tpu", "device: .*found 'tpu'"),
        ("recovery.studies.quadratic.gama", 0.4, r"recovery\.studies\.quadratic\.gama: unknown"),
        ("recovery.studies.quadratic.gamma", -0.1, r"quadratic\.gamma: .*found -0.1"),
        ("recovery.studies.quadratic.gamma", float("nan"), r"quadratic\.gamma: "),
        ("recovery.studies.quadratic.degree", 7, r"quadratic\.degree: .*found 7"),
        ("recovery.studies.quadratic.readout", "relu6", r"quadratic\.readout: .*found 'relu6'"),
        ("recovery.studies.quadratic.noise", -1.0, r"quadratic\.noise: .*found -1"),
        ("recovery.studies.quadratic.width", 5, "either width_exponent .* or width"),
        ("recovery.studies.equivalent.rows", "gaussian", "rows must be orthonormal"),
        ("recovery.baselines.studies", ["cubic"], "'cubic' is none of"),
        ("recovery.baselines.studies", ["equivalent"], "'equivalent' has no inputs"),
        ("recovery.perturbation.linear.readout", "tanh", "population matrix is known for"),
        ("recovery.spectrum.study", "equivalent", "must have hermite features"),
        ("recovery.spectrum.sample_exponent", 0.01, "gives n = 1 at d = 49"),
        ("recovery.spectrum.dimension", 1, r"spectrum\.dimension: "),
        ("recovery.baselines.studies", [], "names no study"),
        ("recovery.baselines.studies", ["depth_linear"] * 2, "has a value twice"),
        ("recovery.population.dimensions", [16, 16], "has a value twice, found .16, 16.$"),
        (
            "recovery.error_exponents.gammas",
            [0.4, 0.5],
            "holds 0.5, at which there is no power law",
        ),
        ("recovery.error_exponents.widths", [15], "is direction 3, which is not behind first, 3"),
        ("recovery.error_exponents.first", 20, "not behind first, 20"),
        ("recovery.batch", 0, r"recovery\.batch: "),
        ("recovery.studies.quadratic.dimensions", [], r"quadratic\.dimensions: "),
        ("recovery.studies.quadratic.dimensions", [36, 36], "has a value twice, found .36, 36.$"),
        ("recovery.studies.quadratic.dimensions", ["36"], r"dimensions\.0: "),
        ("recovery.studies.smoothing.width", 60, r"studies\.smoothing: 60 directions .*D = 50"),
        ("recovery.studies.smoothing.sample_exponents.count", 0, r"sample_exponents\.count: "),
        ("recovery.studies.smoothing.sample_exponents.stop", 0.1, "stop 0.1 is below start"),
        ("recovery.studies", {}, r"recovery\.studies: "),
        ("recovery.spectrum.study", "cubic", "'cubic' is none of"),
        ("recovery.estimator.tolerance", 0, r"estimator\.tolerance: "),
        ("recovery.baselines.ridges", [], r"baselines\.ridges: "),
        ("curvature.measurement.top_k", 0, r"measurement\.top_k: .*found 0"),
        ("curvature.measurement.batch_size", 5000, "batch_size 5000 of model 'resnet18' is above"),
        ("curvature.models.gpt2.batch_size", 9000, r"models\.gpt2\.batch_size 9000"),
        ("curvature.models.gpt2.batch_size", 1, r"models\.gpt2\.batch_size: .*found 1"),
        ("curvature.controls.batch_size", 9000, r"controls\.batch_size 9000 of model"),
        ("curvature.models.vgg11.stem", "imagenet", "is measured only, from its weights"),
        ("curvature.experiments.width.models", ["mlp", "mlp_deep"], "do not differ in width"),
        ("curvature.experiments.depth.models", ["mlp", "resnet18"], "'resnet18' has no depth"),
        ("curvature.experiments.outputs.models", ["gpt2", "vit_10"], "'gpt2' has no n_classes"),
        ("curvature.measurement.method", "fast", r"measurement\.method: "),
        ("curvature.models.mlp.depth", None, "mlp needs depth"),
        ("curvature.models.resnet18.depth", 3, "resnet18 has no depth"),
        ("curvature.data.images.dataset", "minst", r"data\.images: .*'minst' found"),
        ("curvature.data.images.dataset", "text", r"data\.images\.context: missing"),
        ("curvature.data.classes_2.n_classes", 1, r"data\.classes_2\.n_classes: .*found 1"),
        (
            "curvature.models.resnet18.data",
            "imagse",
            r"models\.resnet18\.data: 'imagse' is none of",
        ),
        ("curvature.models.resnet18.training", "sdg", r"resnet18\.training: 'sdg' is none of"),
        ("curvature.models.resnet18.data", "text", r"resnet18 cannot read data 'text'"),
        ("curvature.models.gpt2.data", "images", r"gpt2 cannot read data 'images'"),
        ("curvature.models.gpt2.heads", 3, "width 64 is no multiple of heads 3"),
        ("curvature.models.gpt2.normalisation", "batch", "normalisation of gpt2 is layer or none"),
        ("curvature.models.vit_tiny.patch", 5, "patch 5 does not divide image_size 16 of data"),
        ("curvature.models.vgg11.skip_scale", 0.5, "vgg11 has no skips"),
        ("curvature.models.vgg11.separable", True, "separable goes with resnet18"),
        ("curvature.models.mlp.stem", "imagenet", "stem goes with ResNets and VGGs"),
        ("curvature.models.resnet18.checkpoints", [3, 10], "must lie below max_epochs 10"),
        ("curvature.models.resnet18.weights", "x.safetensors", "they have no checkpoints"),
        ("curvature.experiments.width.models", ["mlp", "mpl"], r"width\.models: 'mpl' is none of"),
        ("curvature.experiments.width.models", ["mlp"], r"experiments\.width\.models: "),
        ("curvature.experiments.width.over", "colour", r"experiments\.width\.over: "),
        ("curvature.experiments.architectures", None, r"experiments\.architectures is missing"),
        ("curvature.controls.models", ["lpm"], r"controls\.models: 'lpm' is none of"),
        ("curvature.layer_rates", {}, r"curvature\.layer_rates: unknown key"),
        ("optimizers", [], "optimizers: "),
        ("optimizers.rases", {}, r"optimizers\.rases: unknown key"),
        ("optimizers.races.images.model", "lpm", r"images\.model: 'lpm' is none of .'resnet18'"),
        ("optimizers.races.images.train_size", 10**6, r"are more than curvature\.data\.images\."),
        ("optimizers.races.images.batch_size", 501, "batch_size 501 is above train_size 500"),
        ("optimizers.methods.sgd.damping", 0.0, r"methods\.sgd\.damping: .*found 0"),
        (
            "optimizers.methods.sgd.learning_rates",
            [0.1],
            "methods must have as many tuning",
        ),
        ("optimizers.layer_rates.races", ["lpm"], r"layer_rates\.races: 'lpm' is none of"),
        ("optimizers.layer_rates.method", "muon", "go with sgd and adamw, not muon"),
        ("optimizers.responses.race", "lpm", r"responses\.race: 'lpm' is none of"),
        ("curvature", [], "curvature: "),
        ("recovery.studies.quadratic.width_exponent", 1000.0, r"quadratic\.width_exponent: "),
        ("recovery.studies.smoothing.sample_exponents.start", 0.01, "n = 1 to .* at d = 50"),
        ("recovery.studies.smoothing.sample_exponents.stop", 9.9, "n must be 2 to"),
        ("recovery.studies.smoothing.sample_exponents.count", 10**9, r"sample_exponents\.count: "),
        ("recovery.studies.smoothing.gamma", 500.0, r"smoothing\.gamma: .*found 500"),
        ("recovery.estimator.tolerance", "1e-4", r"a dot and a sign .* as in 1\.0e-4"),
        ("recovery.baselines.max_sample_size", 10, "max_sample_size 10 is below every sample size"),
        ("curvature.data.images.train_size", 5000, "digits has 1797 images"),
        ("intervals.resamples", 10, r"intervals\.resamples: "),
    ],
)
def test_a_wrong_value_is_named(raw, path, value, message):
    broken = copy.deepcopy(raw)
    *parents, key = path.split(".")
    section = broken
    for parent in parents:
        section = section[parent]
    section[key] = value
    with pytest.raises(ConfigError, match=message) as caught:
        parse_config(broken, source="my.yaml")
    assert str(caught.value).startswith("my.yaml: ")
    assert len(str(caught.value).splitlines()) <= 4


def test_a_missing_key_is_named(raw):
    broken = copy.deepcopy(raw)
    del broken["recovery"]["studies"]["smoothing"]["gamma"]
    with pytest.raises(ConfigError, match=r"recovery\.studies\.smoothing\.gamma: missing"):
        parse_config(broken, source="x")


def test_null_removes_an_inherited_entry(raw):
    changed = merge(
        raw,
        {
            "recovery": {"studies": {"gamma_02": None}},
            "curvature": {"models": {"vgg16": None}, "experiments": {"depth": None}},
            "optimizers": {"races": {"text": None}, "methods": {"muon": None}},
        },
    )
    config = parse_config(changed, source="x")
    assert "gamma_02" not in config.recovery.studies
    assert "vgg16" not in config.curvature.models
    assert "depth" not in config.curvature.experiments
    assert "text" not in config.optimizers.races
    assert "muon" not in config.optimizers.methods


def test_config_is_frozen(root):
    config = load_config(root / "config.yaml")
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 4


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read"):
        load_config(tmp_path / "absent.yaml")


def test_an_unknown_preset_lists_those_there_are(root):
    with pytest.raises(
        ConfigError, match=r"'big' is not a preset; there are fashion_mnist, laptop, paper, smoke"
    ):
        load_preset("big", root)


@given(
    start=st.floats(0.1, 3),
    width=st.floats(0, 2),
    count=st.integers(1, 40),
    dimension=st.integers(2, 200),
)
def test_sample_sizes_increase_from_start_to_stop(start, width, count, dimension):
    sizes = SampleExponents(start=start, stop=start + width, count=count).sample_sizes(dimension)
    assert sizes == sorted(set(sizes))
    assert sizes[0] == round(dimension**start)
    assert sizes[-1] == round(dimension ** (start + width)) or count == 1


def test_a_slice_round_trips_through_json(root):
    measurement = load_config(root / "config.yaml").curvature.measurement
    assert parse_settings(Measurement, measurement.model_dump_json()) == measurement
    with pytest.raises(ConfigError, match="top_k"):
        parse_settings(Measurement, json.dumps({**measurement.model_dump(), "top_k": 0}))
    with pytest.raises(ConfigError, match="JSON"):
        parse_settings(Measurement, "{not json")


def _leaves(tree, path=()):
    for key, value in tree.items():
        if isinstance(value, dict) and key != "sample_exponents":  # one grid, written whole
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value
