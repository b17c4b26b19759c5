"""Settings of the data sets of arXiv:2606.02596."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spectral_laws.settings.base import MOST, Noise, PathText, Settings

Task = Literal["language_modelling", "classification"]
DIGITS = 1797
"""Images of scikit-learn's digits."""


class ImageFiles(Settings):
    """Images of a known data set: embedded digits, or files in ``folder``.

    ``folder`` null is where the pipeline downloads to, or Debian's own folder of fashion_mnist.
    """

    dataset: Literal[
        "digits", "mnist", "fashion_mnist", "cifar10", "cifar100", "tiny_imagenet", "imagenet"
    ]
    folder: PathText | None = None
    image_size: Annotated[int, Field(ge=8, le=512)]
    train_size: Annotated[int, Field(ge=32, le=MOST)]
    test_size: Annotated[int, Field(ge=32, le=MOST)]

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
    noise: Noise
    image_size: Annotated[int, Field(ge=8, le=512)]
    train_size: Annotated[int, Field(ge=32, le=MOST)]
    test_size: Annotated[int, Field(ge=32, le=MOST)]


class Text(Settings):
    """Characters of a text file, cut into windows; null is the text that CPython ships."""

    dataset: Literal["text"]
    file: PathText | None = None
    context: Annotated[int, Field(ge=2, le=4096)]
    train_size: Annotated[int, Field(ge=32, le=MOST)]
    test_size: Annotated[int, Field(ge=32, le=MOST)]


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
    train_size: Annotated[int, Field(ge=32, le=MOST)]
    test_size: Annotated[int, Field(ge=32, le=MOST)]


Data = Annotated[
    ImageFiles | SyntheticImages | Text | SyntheticLanguage, Field(discriminator="dataset")
]
"""Settings of one data set."""

CLASSES = {
    "digits": 10,
    "mnist": 10,
    "fashion_mnist": 10,
    "cifar10": 10,
    "cifar100": 100,
    "tiny_imagenet": 200,
    "imagenet": 1000,
}
"""Classes of the data sets that have a fixed number of them."""


def n_classes_of(data: Data) -> int | None:
    """Classes (of language modelling: tokens) that the settings tell; None for a text."""
    if isinstance(data, ImageFiles):
        return CLASSES[data.dataset]
    if isinstance(data, SyntheticImages):
        return data.n_classes
    if isinstance(data, SyntheticLanguage):
        modelling = data.task == "language_modelling"
        return data.vocabulary if modelling else data.n_chains
    return None


def task_of(data: Data) -> str:
    """What is learned from a data set: classification or language_modelling."""
    if isinstance(data, ImageFiles | SyntheticImages):
        return "classification"
    return data.task if isinstance(data, SyntheticLanguage) else "language_modelling"
