"""The configuration: typed, frozen, and checked as a whole before anything runs.

``config.yaml`` is complete; a file under ``config/`` holds only what differs and is merged over
it, key by key. A ``null`` under ``recovery.studies``, ``recovery.perturbation`` or
``curvature.models`` removes an inherited entry.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from spectral_laws.errors import ConfigError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Features = Literal["hermite", "equivalent"]
Readout = Literal["identity", "tanh", "relu"]
Rows = Literal["orthonormal", "gaussian"]
Architecture = Literal["resnet18", "resnet50", "vgg11", "vgg16", "mlp", "gpt2", "vit_tiny"]
Normalisation = Literal["batch", "layer", "none"]
Task = Literal["language_modelling", "classification"]
Method = Literal["auto", "gauss_newton", "exact"]


_SHOWN = 3  # mistakes that are listed; studies that share an anchor share their mistakes
_REMOVABLE = (
    ("recovery", "studies"),
    ("recovery", "perturbation"),
    ("curvature", "models"),
    ("curvature", "experiments"),
)
DIGITS = 1797
"""Images of scikit-learn's digits."""
MAX_SAMPLE_SIZE = 10**10
"""Larger sample sizes are taken for a mistyped exponent."""


class Settings(BaseModel):
    """Base of all settings: no unknown keys, no conversions, no changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _distinct(name: str, values: Sequence[object]) -> None:
    if len(set(values)) < len(values):
        raise ValueError(f"{name} {list(values)} has a value twice")


class SampleExponents(Settings):
    """Sample sizes n = d^a for ``count`` values of a, evenly spaced from start to stop."""

    start: Positive
    stop: Annotated[float, Field(gt=0, le=10)]
    count: Annotated[int, Field(ge=1, le=1000)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.stop < self.start:
            raise ValueError(f"stop {self.stop} is below start {self.start}")
        return self

    def sample_sizes(self, dimension: int) -> list[int]:
        """Distinct sample sizes, rounded, increasing."""
        exponents = np.linspace(self.start, self.stop, self.count)
        return sorted({round(dimension**a) for a in exponents})


class TeacherFamily(Settings):
    """The teachers of a study, whatever their dimension, and the grid of sample sizes.

    ``features`` are true Hermite features, or their Gaussian equivalent N(0, I_D). The number of
    directions is d^width_exponent, rounded down, or ``width`` at every dimension.
    """

    features: Features = "hermite"
    degree: Annotated[int, Field(ge=1, le=6)]
    width_exponent: Annotated[float, Field(gt=0, le=10)] | None = None
    width: Count | None = None
    gamma: Annotated[float, Field(ge=0, le=10)]
    rows: Rows = "orthonormal"
    readout: Readout = "identity"
    noise: NonNegative = 0.0
    sample_exponents: SampleExponents

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if (self.width_exponent is None) == (self.width is None):
            raise ValueError("needs either width_exponent (d1 = d^eps) or width (d1), not both")
        return self

    @model_validator(mode="after")
    def _equivalent_has_orthonormal_rows(self) -> Self:
        if self.features == "equivalent" and self.rows != "orthonormal":
            raise ValueError("rows must be orthonormal where features is equivalent")
        return self

    def n_directions(self, dimension: int) -> int:
        """Number of teacher directions, d1."""
        if self.width_exponent is None:
            assert self.width is not None
            return self.width
        return math.floor(math.pow(dimension, self.width_exponent) + 1e-9)

    def feature_dimension(self, dimension: int) -> int:
        """Number of features, D = C(d + q - 1, q)."""
        return math.comb(dimension + self.degree - 1, self.degree)


class RecoveryStudy(TeacherFamily):
    """A family of teachers, the dimensions at which it is drawn, and how many of each."""

    dimensions: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1)]
    seeds: Count

    @model_validator(mode="after")
    def _widths_fit(self) -> Self:
        _distinct("dimensions", self.dimensions)
        for dimension in self.dimensions:
            width, size = self.n_directions(dimension), self.feature_dimension(dimension)
            if width > size:
                raise ValueError(
                    f"{width} directions are asked for at d = {dimension}, but there are only "
                    f"D = {size} features"
                )
            sizes = self.sample_exponents.sample_sizes(dimension)
            if sizes[0] < 2 or sizes[-1] > MAX_SAMPLE_SIZE:
                raise ValueError(
                    f"sample_exponents give n = {sizes[0]} to {sizes[-1]} at d = {dimension}, but "
                    f"n must be 2 to {MAX_SAMPLE_SIZE:g}"
                )
        return self


class Estimator(Settings):
    """How the top eigenvectors of the moment matrix are found."""

    tolerance: Annotated[float, Field(gt=0, lt=1)]
    equivalent_tolerance: Annotated[float, Field(gt=0, lt=1)]
    max_iterations: Count
    memory_mb: Count


class Evaluation(Settings):
    """Test set and scalar readout of the recovery experiments."""

    test_size: Annotated[int, Field(ge=100)]
    readout_size: Annotated[int, Field(ge=100)]
    readout_degree: Annotated[int, Field(ge=1, le=12)]
    ridge: NonNegative


class NetworkBaseline(Settings):
    """Three-layer ReLU network trained by AdamW."""

    width: Count
    epochs: Count
    batch_size: Count
    learning_rate: Positive
    weight_decay: NonNegative


class Baselines(Settings):
    """Methods without spectral recovery, on the same samples, for some of the studies."""

    studies: tuple[Name, ...] = ()
    max_sample_size: Annotated[int, Field(ge=10)]
    ridges: Annotated[tuple[Positive, ...], Field(min_length=1)]
    random_features: Count
    network: NetworkBaseline

    @model_validator(mode="after")
    def _studies_differ(self) -> Self:
        _distinct("studies", self.studies)
        return self


class Population(Settings):
    """Teachers of degree 2 whose moment matrix is taken at infinitely many samples."""

    dimensions: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1)]
    width_exponent: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, le=10)]
    seeds: Count

    @model_validator(mode="after")
    def _dimensions_differ(self) -> Self:
        _distinct("dimensions", self.dimensions)
        return self


class ErrorExponents(Settings):
    """Exponents of the test error from the sharp theory, at finite widths.

    A width d1 uses the sample sizes at which ``first`` to ``last_share`` * d1 directions are past
    their thresholds.
    """

    gammas: Annotated[tuple[Annotated[float, Field(ge=0, le=10)], ...], Field(min_length=1)]
    widths: Annotated[tuple[Annotated[int, Field(ge=10)], ...], Field(min_length=1)]
    first: Count
    last_share: Annotated[float, Field(gt=0, le=1)]
    seeds: Count

    @model_validator(mode="after")
    def _windows_hold_a_law(self) -> Self:
        _distinct("gammas", self.gammas)
        _distinct("widths", self.widths)
        for gamma in self.gammas:
            if gamma in (0.0, 0.5):
                raise ValueError(f"gammas holds {gamma}, at which there is no power law")
        for width in self.widths:
            last = round(self.last_share * width)
            if last <= self.first:
                raise ValueError(
                    f"last_share {self.last_share} of width {width} is direction {last}, which is "
                    f"not behind first, {self.first}"
                )
        return self


class SpectrumPoint(Settings):
    """The one moment matrix whose whole spectrum is drawn."""

    study: Name
    dimension: Annotated[int, Field(ge=2)]
    sample_exponent: Annotated[float, Field(gt=0, le=10)]

    @property
    def sample_size(self) -> int:
        """N = d^sample_exponent, rounded."""
        return round(math.pow(self.dimension, self.sample_exponent))


class Recovery(Settings):
    """Everything about arXiv:2605.14567."""

    batch: Count
    studies: Annotated[dict[Name, RecoveryStudy], Field(min_length=1)]
    estimator: Estimator
    evaluation: Evaluation
    baselines: Baselines
    spectrum: SpectrumPoint
    perturbation: Annotated[dict[Name, RecoveryStudy], Field(min_length=1)]
    population: Population
    error_exponents: ErrorExponents

    @model_validator(mode="after")
    def _baselines_have_sample_sizes(self) -> Self:
        limit = self.baselines.max_sample_size
        if not self.baselines.studies:
            raise ValueError("baselines.studies names no study")
        for name in self.baselines.studies:
            study = self.studies.get(name)
            if study is None:
                raise ValueError(f"baselines.studies: {name!r} is none of {sorted(self.studies)}")
            if study.features != "hermite":
                raise ValueError(
                    f"baselines.studies: {name!r} has no inputs, its features are drawn"
                )
            for dimension in study.dimensions:
                smallest = study.sample_exponents.sample_sizes(dimension)[0]
                if smallest > limit:
                    raise ValueError(
                        f"baselines.max_sample_size {limit} is below every sample size of study "
                        f"{name!r} at d = {dimension} (the smallest is {smallest})"
                    )
        return self

    @model_validator(mode="after")
    def _perturbed_matrices_are_known(self) -> Self:
        for name, study in self.perturbation.items():
            if study.features != "hermite" or study.degree > 2 or study.readout != "identity":
                raise ValueError(
                    f"perturbation.{name}: the population matrix is known for hermite features of "
                    "degree 1 or 2 with readout identity"
                )
        return self

    @model_validator(mode="after")
    def _spectrum_is_of_a_study(self) -> Self:
        if self.spectrum.study not in self.studies:
            raise ValueError(
                f"spectrum.study {self.spectrum.study!r} is none of {sorted(self.studies)}"
            )
        if self.studies[self.spectrum.study].features != "hermite":
            raise ValueError(f"spectrum.study {self.spectrum.study!r} must have hermite features")
        dimension, size = self.spectrum.dimension, self.spectrum.sample_size
        study = self.studies[self.spectrum.study]
        if study.n_directions(dimension) > study.feature_dimension(dimension):
            raise ValueError(
                f"spectrum.dimension {dimension} has fewer features than study "
                f"{self.spectrum.study!r} has directions"
            )
        if not 2 <= size <= MAX_SAMPLE_SIZE:
            raise ValueError(
                f"spectrum.sample_exponent gives n = {size:g} at d = {dimension}, but n must be 2 "
                f"to {MAX_SAMPLE_SIZE:g}"
            )
        return self


class ImageFiles(Settings):
    """Images of a known data set: embedded digits, or files in ``folder``.

    ``folder`` null is where the pipeline downloads to, or Debian's own folder of fashion_mnist.
    """

    dataset: Literal[
        "digits", "mnist", "fashion_mnist", "cifar10", "cifar100", "tiny_imagenet", "imagenet"
    ]
    folder: str | None = None
    image_size: Annotated[int, Field(ge=8, le=512)]
    train_size: Annotated[int, Field(ge=32)]
    test_size: Annotated[int, Field(ge=32)]

    @model_validator(mode="after")
    def _digits_suffice(self) -> Self:
        asked = self.train_size + self.test_size
        if self.dataset == "digits" and asked > DIGITS:
            raise ValueError(f"train_size + test_size is {asked}, but digits has {DIGITS} images")
        return self


class SyntheticImages(Settings):
    """Images drawn around one random smooth pattern per class."""

    dataset: Literal["synthetic_images"]
    n_classes: Annotated[int, Field(ge=2, le=100_000)]
    channels: Annotated[int, Field(ge=1, le=16)]
    noise: NonNegative
    image_size: Annotated[int, Field(ge=8, le=512)]
    train_size: Annotated[int, Field(ge=32)]
    test_size: Annotated[int, Field(ge=32)]


class Text(Settings):
    """Characters of a text file, cut into windows; null is the text that CPython ships."""

    dataset: Literal["text"]
    file: str | None = None
    context: Annotated[int, Field(ge=2, le=4096)]
    train_size: Annotated[int, Field(ge=32)]
    test_size: Annotated[int, Field(ge=32)]


class SyntheticLanguage(Settings):
    """Sequences of several Markov chains over a Zipf-weighted vocabulary.

    ``task`` says what is learned: the next token, or which of the chains made the sequence.
    """

    dataset: Literal["synthetic_language"]
    task: Task
    vocabulary: Annotated[int, Field(ge=2, le=100_000)]
    zipf_exponent: Annotated[float, Field(ge=0, le=10)]
    n_chains: Annotated[int, Field(ge=2, le=1000)]
    context: Annotated[int, Field(ge=2, le=4096)]
    train_size: Annotated[int, Field(ge=32)]
    test_size: Annotated[int, Field(ge=32)]


Data = Annotated[
    ImageFiles | SyntheticImages | Text | SyntheticLanguage, Field(discriminator="dataset")
]
"""Settings of one data set."""

_TRANSFORMERS = ("gpt2", "vit_tiny")
_RESIDUAL = ("resnet18", "resnet50", *_TRANSFORMERS)
_NORMALISATIONS: dict[str, tuple[str, ...]] = {
    "resnet18": ("batch", "none"),
    "resnet50": ("batch", "none"),
    "vgg11": ("batch", "none"),
    "vgg16": ("batch", "none"),
    "mlp": ("none", "layer"),
    "gpt2": ("layer", "none"),
    "vit_tiny": ("layer", "none"),
}


class Model(Settings):
    """A network, the data set and training it is given, and where it is measured.

    Attributes:
        architecture: its kind; names of ResNet's and VGG's parameters are torchvision's.
        data: name of an entry of ``curvature.data``.
        training: name of an entry of ``curvature.training``.
        width: channels of the first stage, hidden units of an MLP, embedding of a transformer.
        depth: hidden layers of an MLP, blocks of a transformer; fixed in the others.
        heads: attention heads of a transformer.
        patch: pixels a side of a vision transformer's patches.
        normalisation: batch, layer or none; by default the first that its architecture has.
        skip_scale: factor of every residual connection.
        separable: 3x3 convolutions become a depth-wise and a point-wise one (resnet18).
        stem: of ResNets and VGGs: for small images (cifar), or torchvision's own (imagenet).
        checkpoints: epochs measured besides the last; 0 is the initial network.
        batch_size: samples of the measurement batch; null is that of ``measurement``.
        top_k: directions per layer; null is that of ``measurement``.
        weights: safetensors file of torchvision's names, measured instead of a training.
    """

    architecture: Architecture
    data: Name
    training: Name
    width: Count
    depth: Count | None = None
    heads: Count | None = None
    patch: Count | None = None
    normalisation: Normalisation | None = None
    skip_scale: Annotated[float, Field(ge=0, le=1)] = 1.0
    separable: bool = False
    stem: Literal["cifar", "imagenet"] = "cifar"
    checkpoints: tuple[Annotated[int, Field(ge=0)], ...] = ()
    batch_size: Count | None = None
    top_k: Count | None = None
    weights: str | None = None

    @property
    def normaliser(self) -> str:
        """The normalisation, or the architecture's usual one."""
        return self.normalisation or _NORMALISATIONS[self.architecture][0]

    @model_validator(mode="after")
    def _options_belong_to_the_architecture(self) -> Self:
        name = self.architecture
        for option, owners in (
            ("depth", ("mlp", *_TRANSFORMERS)),
            ("heads", _TRANSFORMERS),
            ("patch", ("vit_tiny",)),
        ):
            given = getattr(self, option) is not None
            if given and name not in owners:
                raise ValueError(f"{name} has no {option}; it goes with {' or '.join(owners)}")
            if not given and name in owners:
                raise ValueError(f"{name} needs {option}")
        if self.normaliser not in _NORMALISATIONS[name]:
            known = " or ".join(_NORMALISATIONS[name])
            raise ValueError(f"normalisation of {name} is {known}, not {self.normalisation}")
        if self.skip_scale != 1 and name not in _RESIDUAL:
            raise ValueError(f"skip_scale goes with {', '.join(_RESIDUAL)}; {name} has no skips")
        if self.separable and name != "resnet18":
            raise ValueError("separable goes with resnet18")
        if self.stem == "imagenet" and not name.startswith(("resnet", "vgg")):
            raise ValueError(f"stem goes with ResNets and VGGs, not with {name}")
        if self.heads is not None and self.width % self.heads:
            raise ValueError(f"width {self.width} is no multiple of heads {self.heads}")
        _distinct("checkpoints", self.checkpoints)
        if self.weights is not None and self.checkpoints:
            raise ValueError("weights are measured as they are; they have no checkpoints")
        return self


class Training(Settings):
    """SGD with momentum or AdamW, one-cycle schedule, stopped early at ``target_loss``.

    ``momentum`` is AdamW's first decay rate; its second is 0.999.
    """

    optimizer: Literal["sgd", "adamw"]
    max_epochs: Count
    batch_size: Annotated[int, Field(ge=2)]
    learning_rate: Positive
    momentum: Annotated[float, Field(ge=0, lt=1)]
    weight_decay: NonNegative
    label_smoothing: Annotated[float, Field(ge=0, lt=1)]
    target_loss: NonNegative


class Measurement(Settings):
    """The batch and the directions of the curvature measurement."""

    batch_size: Annotated[int, Field(ge=2)]
    top_k: Count
    chunk_size: Count
    method: Method


class Experiment(Settings):
    """Networks set beside each other; they differ in the attribute ``over``."""

    over: Literal[
        "architecture",
        "normalisation",
        "skip_scale",
        "n_classes",
        "task",
        "width",
        "depth",
        "separable",
    ]
    models: Annotated[tuple[Name, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _models_differ(self) -> Self:
        _distinct("models", self.models)
        return self


class ControlSettings(Settings):
    """What stands beside the directional curvatures, for the first ``replicates`` trainings.

    ``eigenvalues``: leading eigenvalues of each layer's Hessian block, by Lanczos.
    ``finite_difference_step``: of the gradients' central differences in float32.
    """

    replicates: Count
    batch_size: Annotated[int, Field(ge=2)]
    eigenvalues: Count
    finite_difference_step: Positive


class Controls(ControlSettings):
    """The controls, and the models that have them."""

    models: Annotated[tuple[Name, ...], Field(min_length=1)]


class Curvature(Settings):
    """Everything about arXiv:2606.02596."""

    batch: Count
    seeds: Count
    reference: str | None
    data: Annotated[dict[Name, Data], Field(min_length=1)]
    training: Annotated[dict[Name, Training], Field(min_length=1)]
    models: Annotated[dict[Name, Model], Field(min_length=1)]
    measurement: Measurement
    controls: Controls
    experiments: dict[Name, Experiment]

    def replicates(self, model: str) -> int:
        """Trainings of a model; weights that were given make a single network."""
        return self.seeds if self.models[model].weights is None else 1

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, model in self.models.items():
            for section, known in (("data", self.data), ("training", self.training)):
                wanted = getattr(model, section)
                if wanted not in known:
                    raise ValueError(f"models.{name}.{section}: {wanted!r} is none of {[*known]}")
            language = isinstance(self.data[model.data], Text | SyntheticLanguage)
            if language != (model.architecture == "gpt2"):
                raise ValueError(
                    f"models.{name}: {model.architecture} cannot read data {model.data!r}"
                )
            size = getattr(self.data[model.data], "image_size", None)
            if model.patch is not None and size is not None and size % model.patch:
                raise ValueError(
                    f"models.{name}.patch {model.patch} does not divide image_size {size} of data "
                    f"{model.data!r}"
                )
            last = self.training[model.training].max_epochs
            if any(epoch >= last for epoch in model.checkpoints):
                raise ValueError(
                    f"models.{name}.checkpoints {list(model.checkpoints)} must lie below "
                    f"max_epochs {last} of training {model.training!r}"
                )
        for section, names in (
            ("controls", self.controls.models),
            *((f"experiments.{name}", e.models) for name, e in self.experiments.items()),
        ):
            unknown = [name for name in names if name not in self.models]
            if unknown:
                raise ValueError(f"{section}.models: {unknown[0]!r} is none of {[*self.models]}")
        return self

    @model_validator(mode="after")
    def _architectures_are_named(self) -> Self:
        if "architectures" not in self.experiments:
            raise ValueError("experiments.architectures is missing; most claims rest on its models")
        return self

    @model_validator(mode="after")
    def _batches_fit(self) -> Self:
        for name, model in self.models.items():
            size = self.data[model.data].train_size
            wanted = {
                f"training.{model.training}.batch_size": self.training[model.training].batch_size,
                "measurement.batch_size": model.batch_size or self.measurement.batch_size,
            }
            for section, batch in wanted.items():
                if batch > size:
                    raise ValueError(
                        f"{section} {batch} of model {name!r} is above data.{model.data}.train_size"
                        f" {size}"
                    )
        return self


class Intervals(Settings):
    """Bootstrap intervals."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    resamples: Annotated[int, Field(ge=100)]


class Config(Settings):
    """The whole configuration of one preset."""

    preset: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    seed: Annotated[int, Field(ge=0)]
    device: Literal["cpu", "cuda"]
    intervals: Intervals
    recovery: Recovery
    curvature: Curvature


Parsed = TypeVar("Parsed", bound=BaseModel)


def load_config(*paths: Path) -> Config:
    """Read YAML files, merge later ones over earlier ones, and check the result.

    Raises:
        ConfigError: if a file cannot be read, or a key or value is wrong.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        merged = merge(merged, _read_yaml(path))
    return parse_config(merged, source=" + ".join(str(path) for path in paths))


def load_preset(name: str, root: Path) -> Config:
    """The preset ``name`` of the project in ``root``.

    It is ``config.yaml`` itself, or that file with ``config/<name>.yaml`` merged over it.

    Raises:
        ConfigError: if there is no such preset, or it is wrong.
    """
    base, overlay = root / "config.yaml", root / "config" / f"{name}.yaml"
    config = load_config(base, overlay) if overlay.exists() else load_config(base)
    if config.preset != name:
        known = sorted({load_config(base).preset, *(p.stem for p in overlay.parent.glob("*.yaml"))})
        raise ConfigError(f"{name!r} is not a preset; there are {', '.join(known)}")
    return config


def parse_config(raw: Mapping[str, Any], *, source: str) -> Config:
    """Check a merged mapping.

    Raises:
        ConfigError: naming ``source`` and, per mistake, the key, the value and what is allowed.
    """
    cleaned = dict(raw)
    for section, mapping in _REMOVABLE:
        inner = cleaned.get(section)
        if isinstance(inner, Mapping) and isinstance(inner.get(mapping), Mapping):
            kept = {name: value for name, value in inner[mapping].items() if value is not None}
            cleaned[section] = {**inner, mapping: kept}
    try:
        text = json.dumps(cleaned)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: only plain YAML values are allowed ({error})") from None
    return parse_settings(Config, text, source=source)


def parse_settings(model: type[Parsed], text: str, *, source: str = "") -> Parsed:
    """Validate a JSON object as ``model``.

    Raises:
        ConfigError: one line per mistake, with the key's path.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        lines = [_explain(mistake) for mistake in error.errors(include_url=False)]
    head = f"{source}: " if source else ""
    shown = lines[:_SHOWN]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    raise ConfigError(f"{head}{len(lines)} wrong setting(s)\n  " + "\n  ".join(shown))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the keys of ``over`` put in, mappings merged key by key."""
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            result[key] = merge(known, value)
        else:
            result[key] = value
    return result


def _read_yaml(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: must hold a mapping of keys, found {type(content).__name__}")
    return content


def _explain(mistake: Mapping[str, Any]) -> str:
    # Entries of curvature.data are told apart by their dataset, which pydantic puts into the path.
    path = [str(part) for part in mistake["loc"]]
    if path[:2] == ["curvature", "data"]:
        path[3:4] = []
    where = ".".join(path) or "(top level)"
    if mistake["type"] == "extra_forbidden":
        return f"{where}: unknown key"
    if mistake["type"] == "missing":
        return f"{where}: missing"
    message = mistake["msg"].removeprefix("Value error, ")
    if isinstance(mistake["input"], str) and re.fullmatch(r"\d+e[+-]?\d+", mistake["input"]):
        message += " (YAML reads a number with an exponent only with a dot, as in 1.0e-4)"
    if isinstance(mistake["input"], Mapping):
        return f"{where}: {message}"
    return f"{where}: {message}, found {mistake['input']!r}"
