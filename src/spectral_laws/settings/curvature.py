"""Settings of arXiv:2606.02596: networks, training, measurement, experiments."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spectral_laws.settings.base import (
    DISTINCT,
    MOST,
    Count,
    Name,
    NonNegative,
    PathText,
    Positive,
    Repeats,
    Settings,
    check_known,
    smallest_batch,
)
from spectral_laws.settings.data import Data, SyntheticLanguage, Text, n_classes_of, task_of

Architecture = Literal["resnet18", "resnet50", "vgg11", "vgg16", "mlp", "gpt2", "vit_tiny"]
Normalisation = Literal["batch", "layer", "none"]
Method = Literal["auto", "gauss_newton", "exact"]

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
    checkpoints: Annotated[tuple[Annotated[int, Field(ge=0, le=MOST)], ...], DISTINCT] = ()
    batch_size: Annotated[int, Field(ge=2, le=MOST)] | None = None
    top_k: Count | None = None
    weights: PathText | None = None

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
        if name.startswith("vgg") and self.stem == "imagenet" and self.weights is None:
            raise ValueError(
                "a VGG with stem imagenet has dropout and is measured only, from its weights"
            )
        if self.weights is not None and self.checkpoints:
            raise ValueError("weights are measured as they are; they have no checkpoints")
        return self


class Training(Settings):
    """SGD with momentum or AdamW, one-cycle schedule, stopped early at ``target_loss``.

    ``momentum`` is AdamW's first decay rate; its second is 0.999.
    """

    optimizer: Literal["sgd", "adamw"]
    max_epochs: Count
    batch_size: Annotated[int, Field(ge=2, le=MOST)]
    learning_rate: Positive
    momentum: Annotated[float, Field(ge=0, lt=1)]
    weight_decay: NonNegative
    label_smoothing: Annotated[float, Field(ge=0, lt=1)]
    target_loss: NonNegative


class Measurement(Settings):
    """The batch and the directions of the curvature measurement."""

    batch_size: Annotated[int, Field(ge=2, le=MOST)]
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
    models: Annotated[tuple[Name, ...], Field(min_length=2), DISTINCT]


class ControlSettings(Settings):
    """What stands beside the directional curvatures, for the first ``replicates`` trainings.

    ``eigenvalues``: leading eigenvalues of each layer's Hessian block, by Lanczos.
    ``finite_difference_step``: of the gradients' central differences in float32.
    """

    replicates: Repeats
    batch_size: Annotated[int, Field(ge=2, le=MOST)]
    eigenvalues: Count
    finite_difference_step: Positive


class Controls(ControlSettings):
    """The controls, and the models that have them."""

    models: Annotated[tuple[Name, ...], Field(min_length=1)]


class Curvature(Settings):
    """Everything about arXiv:2606.02596."""

    batch: Count
    seeds: Repeats
    reference: PathText | None
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
            check_known(f"models.{name}.data", model.data, self.data)
            check_known(f"models.{name}.training", model.training, self.training)
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
            for name in names:
                check_known(f"{section}.models", name, self.models)
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
            measured = f"models.{name}" if model.batch_size else "measurement"
            wanted = {
                f"training.{model.training}": self.training[model.training].batch_size,
                measured: model.batch_size or self.measurement.batch_size,
            }
            if name in self.controls.models:
                wanted["controls"] = self.controls.batch_size
            for section, batch in wanted.items():
                if batch > size:
                    raise ValueError(
                        f"{section}.batch_size {batch} of model {name!r} is above "
                        f"data.{model.data}.train_size {size}"
                    )
            batch = self.training[model.training].batch_size
            alone = model.weights is None and smallest_batch(size, batch) < 2
            if alone and model.normaliser == "batch":
                raise ValueError(
                    f"training.{model.training}.batch_size {batch} leaves a batch of one sample of "
                    f"data.{model.data}.train_size {size}, and models.{name} has batch norm"
                )
        return self

    @model_validator(mode="after")
    def _experiments_compare(self) -> Self:
        for name, experiment in self.experiments.items():
            values = [self._attribute(model, experiment.over) for model in experiment.models]
            for model, value in zip(experiment.models, values, strict=True):
                if value is None:
                    raise ValueError(
                        f"experiments.{name}.over: model {model!r} has no {experiment.over}"
                    )
            if len(set(values)) < 2:
                raise ValueError(
                    f"experiments.{name}: its models do not differ in {experiment.over}, "
                    f"all have {values[0]}"
                )
        return self

    def _attribute(self, name: str, over: str) -> object:
        """What a model of an experiment is told apart by; None where it has no such thing."""
        model = self.models[name]
        data = self.data[model.data]
        if over == "normalisation":
            return model.normaliser
        if over == "task":
            return task_of(data)
        return n_classes_of(data) if over == "n_classes" else getattr(model, over)
