"""Settings of the race between optimizers (arXiv:2606.02596, experiments 10 and 11)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spectral_laws.settings.base import (
    DISTINCT,
    MOST,
    Count,
    Name,
    NonNegative,
    Positive,
    Repeats,
    Settings,
    check_known,
)

Alpha = Annotated[float, Field(ge=0, le=16)] | Literal["measured"]
Exponent = Annotated[float, Field(ge=-4, le=4)]


class Method(Settings):
    """An optimizer, and the learning rates and weight decays that it is tuned on.

    Every learning rate is tried with the first weight decay, the other weight decays with the best
    learning rate.

    Attributes:
        optimizer: whose update rule.
        momentum: of SGD, Muon and Spectral Newton; the first decay rate of AdamW and SOAP.
        alpha: of Spectral Newton: a number, or ``measured``, each layer's own exponent.
        damping: of Spectral Newton; SGD's learning rates are divided by it.
        learning_rates: peaks of the schedule.
        weight_decays: an L2 penalty of SGD, decoupled in all others.
    """

    optimizer: Literal["sgd", "adamw", "muon", "soap", "spectral_newton"]
    momentum: Annotated[float, Field(ge=0, lt=1)]
    alpha: Alpha | None = None
    damping: Positive | None = None
    learning_rates: Annotated[tuple[Positive, ...], Field(min_length=1), DISTINCT]
    weight_decays: Annotated[tuple[NonNegative, ...], Field(min_length=1), DISTINCT]

    @property
    def n_tuned(self) -> int:
        """Trainings that tuning takes."""
        return len(self.learning_rates) + len(self.weight_decays) - 1

    @model_validator(mode="after")
    def _options_belong_to_the_optimizer(self) -> Self:
        spectral = self.optimizer == "spectral_newton"
        if spectral != (self.alpha is not None):
            raise ValueError("alpha goes with spectral_newton, which needs it")
        if spectral and self.damping is None:
            raise ValueError("spectral_newton needs damping")
        if self.damping is not None and self.optimizer not in ("spectral_newton", "sgd"):
            raise ValueError(f"{self.optimizer} has no damping")
        return self


class RaceTraining(Settings):
    """The trainings of a race: one-cycle schedule, no early stop.

    Attributes:
        train_size: samples trained on, the first of the data set's training samples.
        validation_size: the training samples after these, for tuning alone.
        epochs: of every training.
        batch_size: samples per step.
    """

    train_size: Annotated[int, Field(ge=2, le=MOST)]
    validation_size: Count
    epochs: Count
    batch_size: Annotated[int, Field(ge=2, le=MOST)]

    @model_validator(mode="after")
    def _batch_fits(self) -> Self:
        if self.batch_size > self.train_size:
            raise ValueError(f"batch_size {self.batch_size} is above train_size {self.train_size}")
        return self


class Race(RaceTraining):
    """A task on which all methods meet.

    Attributes:
        model: of ``curvature.models``: its network, its data, its measured exponents.
        seeds: trainings of each tuned method.
        tuning_seeds: trainings that each learning rate and weight decay is judged by.
    """

    model: Name
    seeds: Repeats
    tuning_seeds: Repeats

    @property
    def training(self) -> RaceTraining:
        """The part that every training depends on."""
        return RaceTraining(**{name: getattr(self, name) for name in RaceTraining.model_fields})


class RateVariants(Settings):
    """Learning rates per layer, eta (s / sbar)^b: the tuned ``method`` with each exponent b.

    ``random`` adds a control: the s of the layers exchanged among them, at b = 1.
    """

    method: Name
    exponents: Annotated[tuple[Exponent, ...], Field(min_length=1), DISTINCT]
    random: bool

    @model_validator(mode="after")
    def _exponents_can_be_judged(self) -> Self:
        if 0 in self.exponents:
            raise ValueError("exponents holds 0, which is the training without layer rates")
        if max(self.exponents) < 0:
            raise ValueError("exponents needs a positive one; the claim rests on it")
        return self


class LayerRates(RateVariants):
    """The learning rates per layer, and the races that have them."""

    races: Annotated[tuple[Name, ...], Field(min_length=1), DISTINCT]


class Responses(Settings):
    """The update spectra T(sigma) on one gradient.

    Attributes:
        race: whose network gives it, at initial weights.
        samples: of the race's training samples, that it is the mean over.
        steps: that every method takes with it, at the same weights.
        layers: module names.
    """

    race: Name
    samples: Annotated[int, Field(ge=2, le=MOST)]
    steps: Count
    layers: Annotated[tuple[str, ...], Field(min_length=1)]


class ResponseSettings(Settings):
    """What the update spectra depend on."""

    methods: Annotated[dict[Name, Method], Field(min_length=2)]
    responses: Responses


class Optimizers(ResponseSettings):
    """The race: every method on every task, with equal tuning budgets."""

    races: Annotated[dict[Name, Race], Field(min_length=1)]
    layer_rates: LayerRates

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name in self.layer_rates.races:
            check_known("layer_rates.races", name, self.races)
        check_known("layer_rates.method", self.layer_rates.method, self.methods)
        check_known("responses.race", self.responses.race, self.races)
        if "adamw" not in self.methods:
            raise ValueError("methods.adamw is missing; B14 and the figures compare with it")
        if self.responses.samples > self.races[self.responses.race].train_size:
            raise ValueError("responses.samples is above the race's train_size")
        base = self.methods[self.layer_rates.method].optimizer
        if base not in ("sgd", "adamw"):
            raise ValueError(
                f"layer_rates.method: rates per layer go with sgd and adamw, not {base}"
            )
        return self

    @model_validator(mode="after")
    def _budgets_are_equal(self) -> Self:
        budgets = {name: method.n_tuned for name, method in self.methods.items()}
        if len(set(budgets.values())) > 1:
            raise ValueError(f"methods must have as many tuning trainings as each other: {budgets}")
        return self
