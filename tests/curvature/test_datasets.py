"""Samples in memory and on disk, and what every image data set has in common."""

import numpy as np
import pytest
from pydantic import TypeAdapter
from safetensors.numpy import save_file
from sklearn.datasets import load_digits

from spectral_laws.artifacts import write_arrays
from spectral_laws.curvature.datasets.load import load_samples
from spectral_laws.curvature.datasets.pools import ArrayPool, fit_square
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.errors import DataError, NumericalError
from spectral_laws.provenance import Provenance
from spectral_laws.settings.data import Data

SIZES = {"train_size": 100, "test_size": 50}
ENTRIES = {
    "digits": {"dataset": "digits", "image_size": 8},
    "images": {
        "dataset": "synthetic_images",
        "n_classes": 3,
        "channels": 2,
        "noise": 1.0,
        "image_size": 8,
    },
    "text": {"dataset": "text", "context": 16},
    "language": {
        "dataset": "synthetic_language",
        "task": "language_modelling",
        "vocabulary": 20,
        "zipf_exponent": 1.0,
        "n_chains": 3,
        "context": 12,
    },
    "chains": {
        "dataset": "synthetic_language",
        "task": "classification",
        "vocabulary": 20,
        "zipf_exponent": 1.0,
        "n_chains": 3,
        "context": 12,
    },
}


def entry(name: str, **changes) -> Data:
    return TypeAdapter(Data).validate_python(ENTRIES[name] | SIZES | changes)


def test_digits_are_disjoint_standardised_and_drawn_from_the_seed():
    settings = entry("digits", train_size=1400, test_size=397)
    samples = load_samples(settings, seed=1)
    assert samples.train_inputs.shape == (1400, 1, 8, 8)
    assert samples.test_inputs.shape == (397, 1, 8, 8)
    assert (samples.in_channels, samples.image_size, samples.n_classes) == (1, 8, 10)
    assert samples.train_inputs.mean() == pytest.approx(0, abs=1e-5)
    assert samples.train_inputs.std() == pytest.approx(1, abs=1e-5)
    # At the original size, undoing the shift and scale gives every one of the 1797 images once.
    both = np.concatenate([samples.train_inputs, samples.test_inputs]).reshape(-1, 64)
    pixels, labels = load_digits(return_X_y=True)
    step = (both.max() - both.min()) / 16
    restored = np.rint((both - both.min()) / step)
    found = np.concatenate([samples.train_targets, samples.test_targets])
    order, expected = np.lexsort(restored.T), np.lexsort(pixels.T)
    np.testing.assert_array_equal(restored[order], pixels[expected])
    np.testing.assert_array_equal(found[order], labels[expected])
    again, other = load_samples(settings, seed=1), load_samples(settings, seed=2)
    np.testing.assert_array_equal(samples.train_inputs, again.train_inputs)
    assert not np.array_equal(samples.train_targets, other.train_targets)


def test_images_are_resized_bilinearly():
    small = load_samples(entry("digits"), seed=1)
    large = load_samples(entry("digits", image_size=16), seed=1)
    # Linear interpolation at a quarter and three quarters between pixel centres.
    rows = small.train_inputs[:, 0]
    middle = 0.75 * rows[:, :, :-1] + 0.25 * rows[:, :, 1:]
    middle = 0.75 * middle[:, :-1] + 0.25 * middle[:, 1:]
    flat = np.corrcoef(middle.ravel(), large.train_inputs[:, 0, 1:-1:2, 1:-1:2].ravel())
    assert flat[0, 1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("height", "width"), [(20, 40), (40, 20), (20, 20)])
def test_the_middle_square_of_the_scaled_image_is_kept(height, width):
    # A plane stays the same plane under bilinear scaling, away from the rim.
    rows, columns = np.meshgrid(np.arange(height) + 0.5, np.arange(width) + 0.5, indexing="ij")
    image = (3 * rows + columns).astype(np.float32)[None, None]
    square = fit_square(image, 10)
    assert square.shape == (1, 1, 10, 10)
    top, left = (height - 20) / 2, (width - 20) / 2
    centres = 2 * np.arange(10) + 1
    expected = 3 * (top + centres)[:, None] + left + centres
    np.testing.assert_allclose(square[0, 0, 1:-1, 1:-1], expected[1:-1, 1:-1], rtol=1e-5)


def test_images_of_the_right_size_are_left_alone():
    images = np.random.default_rng(0).random((3, 2, 9, 9), dtype=np.float32)
    np.testing.assert_array_equal(fit_square(images, 9), images)


def test_a_pool_reads_the_asked_images_whatever_their_number():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (1300, 1, 4, 4), dtype=np.uint8)
    pool = ArrayPool(images, np.zeros(1300, dtype=np.int64), 1, "here")
    order = generator.permutation(1300)
    np.testing.assert_array_equal(pool.read(order, 4), images[order])


@pytest.mark.parametrize(("count", "label", "message"), [(9, 0, "9 labels"), (8, 3, "label 3")])
def test_labels_that_do_not_fit_the_images_name_the_source(count, label, message):
    with pytest.raises(DataError, match=f"here: {message}"):
        ArrayPool(np.zeros((8, 1, 4, 4), np.uint8), np.full(count, label), 3, "here")


@pytest.mark.parametrize("name", ENTRIES)
def test_every_kind_survives_the_disk(tmp_path, name):
    samples = load_samples(entry(name), seed=1)
    path = tmp_path / "data.safetensors"
    write_arrays(samples.as_arrays(), path, Provenance({}))
    again = Samples.read(path)
    assert (again.n_classes, again.n_tokens, again.task) == (
        samples.n_classes,
        samples.n_tokens,
        samples.task,
    )
    for key, array in samples.as_arrays().items():
        np.testing.assert_array_equal(again.as_arrays()[key], array)
        assert again.as_arrays()[key].dtype == array.dtype


@pytest.mark.parametrize(
    ("name", "task", "language"),
    [
        ("digits", "classification", False),
        ("text", "language_modelling", True),
        ("language", "language_modelling", True),
        ("chains", "classification", True),
    ],
)
def test_samples_know_what_they_are(name, task, language):
    samples = load_samples(entry(name), seed=1)
    assert (samples.task, samples.is_language) == (task, language)
    if language:
        assert samples.context == samples.train_inputs.shape[1] == ENTRIES[name]["context"]
        with pytest.raises(ValueError, match="not images"):
            samples.image_size  # noqa: B018
    else:
        with pytest.raises(ValueError, match="no context"):
            samples.context  # noqa: B018


@pytest.mark.parametrize("name", ENTRIES)
def test_parts_and_seeds_differ_and_repeat(name):
    first, again = (load_samples(entry(name), seed=1) for _ in range(2))
    other = load_samples(entry(name), seed=2)
    np.testing.assert_array_equal(first.train_inputs, again.train_inputs)
    assert not np.array_equal(first.train_inputs, other.train_inputs)
    assert not np.array_equal(first.train_inputs[:50], first.test_inputs)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("digits", {"train_targets": None}, "arrays"),
        ("digits", {"extra": np.zeros(1)}, "arrays"),
        ("digits", {"train_inputs": np.zeros((100, 64), np.float32)}, "expected float32"),
        ("digits", {"test_inputs": np.zeros((50, 1, 8, 8))}, "float64"),
        ("digits", {"train_inputs": np.zeros((100, 0, 8, 8), np.float32)}, "not empty"),
        ("digits", {"train_targets": np.zeros(99, np.int64)}, "train_targets"),
        ("digits", {"train_targets": np.zeros((100, 8), np.int64)}, "train_targets"),
        ("digits", {"train_targets": np.full(100, 10)}, "outside 0..9"),
        ("digits", {"test_targets": np.full(50, -1)}, "outside 0..9"),
        ("digits", {"test_inputs": np.zeros((50, 3, 8, 8), np.float32)}, "differ in their shape"),
        ("digits", {"n_classes": np.arange(2)}, "n_classes holds 2 numbers"),
        ("digits", {"n_tokens": np.array([9])}, "expected int64 .N, T."),
        ("chains", {"train_inputs": np.full((100, 12), 20)}, "outside 0..19"),
        ("chains", {"test_inputs": np.full((50, 12), -1)}, "outside 0..19"),
        ("chains", {"train_inputs": np.zeros((100, 12), np.int32)}, "int32"),
        ("chains", {"train_targets": np.zeros((100, 11), np.int64)}, "train_targets"),
        ("chains", {"test_targets": np.zeros((50, 12), np.int64)}, "different tasks"),
        ("language", {"n_classes": np.array([21])}, "n_classes 21 is not the vocabulary, 20"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, name, changes, message):
    arrays = load_samples(entry(name), seed=1).as_arrays() | changes
    path = tmp_path / "data.safetensors"
    kept = {key: array for key, array in arrays.items() if array is not None}
    write_arrays(kept, path, Provenance({}))
    with pytest.raises(DataError, match=message) as caught:
        Samples.read(path)
    assert str(path) in str(caught.value)


def test_images_that_are_not_finite_are_refused(tmp_path):
    samples = load_samples(entry("digits"), seed=1)
    bad = samples.train_inputs.copy()
    bad[3, 0, 2, 2] = np.nan
    with pytest.raises(NumericalError, match="train_inputs: 1 of 6400"):
        Samples(bad, samples.train_targets, samples.test_inputs, samples.test_targets, 10)
    path = tmp_path / "data.safetensors"
    save_file(samples.as_arrays() | {"train_inputs": bad}, path)
    with pytest.raises(NumericalError, match="train_inputs: 1 of 6400") as caught:
        Samples.read(path)
    assert str(path) in str(caught.value)
