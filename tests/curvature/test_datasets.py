import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from spectral_laws.artifacts import Provenance, write_arrays
from spectral_laws.config import Data
from spectral_laws.curvature.datasets import DEBIAN_FOLDER, ImageData, load_images
from spectral_laws.curvature.idx import read_idx
from spectral_laws.errors import DataError

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_fashion(
    folder: Path, *, n_train: int = 60, n_test: int = 40, packed: bool = False
) -> None:
    generator = np.random.default_rng(0)
    for images, labels, n in ((IMAGES, LABELS, n_train), (TEST_IMAGES, TEST_LABELS, n_test)):
        arrays = {images: generator.integers(0, 256, (n, 28, 28)), labels: np.arange(n) % 10}
        for name, array in arrays.items():
            content = idx_bytes(array)
            path = folder / (f"{name}.gz" if packed else name)
            path.write_bytes(gzip.compress(content) if packed else content)


def data(**changes) -> Data:
    values = {"dataset": "digits", "folder": None, "image_size": 8, "train_size": 100}
    return Data(**(values | {"test_size": 50} | changes))


def fashion(folder: Path, **changes) -> Data:
    sizes = {"dataset": "fashion_mnist", "train_size": 50, "test_size": 32}
    return data(folder=str(folder), **(sizes | changes))


def test_digits_are_disjoint_standardised_and_drawn_from_the_seed():
    settings_ = data(train_size=1400, test_size=397)
    images = load_images(settings_, seed=1)
    assert images.train_images.shape == (1400, 1, 8, 8)
    assert images.test_images.shape == (397, 1, 8, 8)
    assert (images.in_channels, images.image_size, images.n_classes) == (1, 8, 10)
    assert images.train_images.mean() == pytest.approx(0, abs=1e-5)
    assert images.train_images.std() == pytest.approx(1, abs=1e-5)
    # At the original size, undoing the shift and scale gives every one of the 1797 images once.
    both = np.concatenate([images.train_images, images.test_images]).reshape(-1, 64)
    pixels, labels = load_digits(return_X_y=True)
    step = (both.max() - both.min()) / 16
    restored = np.rint((both - both.min()) / step)
    found = np.concatenate([images.train_labels, images.test_labels])
    order, expected = np.lexsort(restored.T), np.lexsort(pixels.T)
    np.testing.assert_array_equal(restored[order], pixels[expected])
    np.testing.assert_array_equal(found[order], labels[expected])
    again, other = load_images(settings_, seed=1), load_images(settings_, seed=2)
    np.testing.assert_array_equal(images.train_images, again.train_images)
    assert not np.array_equal(images.train_labels, other.train_labels)


def test_images_are_resized_bilinearly():
    small, large = load_images(data(), seed=1), load_images(data(image_size=16), seed=1)
    # Linear interpolation at a quarter and three quarters between pixel centres.
    rows = small.train_images[:, 0]
    middle = 0.75 * rows[:, :, :-1] + 0.25 * rows[:, :, 1:]
    middle = 0.75 * middle[:, :-1] + 0.25 * middle[:, 1:]
    flat = np.corrcoef(middle.ravel(), large.train_images[:, 0, 1:-1:2, 1:-1:2].ravel())
    assert flat[0, 1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("packed", [False, True])
def test_fashion_mnist_reads_plain_and_packed_files(tmp_path, packed):
    write_fashion(tmp_path, packed=packed)
    images = load_images(fashion(tmp_path, image_size=28), seed=3)
    assert images.train_images.shape == (50, 1, 28, 28)
    assert images.test_images.shape == (32, 1, 28, 28)
    # The training part holds 50 of the 60 training images, each with its own label.
    raw = np.random.default_rng(0).integers(0, 256, (60, 28, 28))
    values = images.train_images[:, 0]
    pixels = np.rint((values - values.min()) / (values.max() - values.min()) * 255)
    indices = [int(np.flatnonzero((raw == image).all((1, 2)))[0]) for image in pixels]
    assert len(set(indices)) == 50
    np.testing.assert_array_equal(images.train_labels, np.array(indices) % 10)


def test_a_missing_folder_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError) as caught:
        load_images(fashion(tmp_path / "nowhere"), seed=1)
    message = str(caught.value)
    assert str(tmp_path / "nowhere" / IMAGES) in message
    assert "dataset-fashion-mnist" in message
    assert str(DEBIAN_FOLDER) in message
    assert all(name in message for name in (LABELS, TEST_IMAGES, TEST_LABELS))
    assert len(message.splitlines()) <= 5


def test_without_a_folder_debians_is_used():
    if DEBIAN_FOLDER.is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is installed")
    with pytest.raises(DataError, match=str(DEBIAN_FOLDER / IMAGES)):
        load_images(data(dataset="fashion_mnist"), seed=1)


def corrupt(folder: Path, name: str, change) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (IMAGES, lambda b: b[:-1], "only 47039 bytes of data"),
        (IMAGES, lambda b: b + b"x", "more than 47040 bytes of data"),
        (IMAGES, lambda b: b[:9], "truncated inside the IDX header"),
        (IMAGES, lambda b: b"", "starts with nothing"),
        (IMAGES, lambda b: b"\x01" + b[1:], "not an IDX file"),
        (IMAGES, lambda b: b[:2] + b"\x0d" + b[3:], "type code 0x0d, expected 0x08"),
        (IMAGES, lambda b: b[:3] + b"\x01" + b[4:], "1 axes, expected 3"),
        (IMAGES, lambda b: b[:4] + b"\xff" * 12 + b[16:], "only 47040 bytes of data"),
        (IMAGES, lambda b: b[:4] + bytes(4) + b[8:], "is empty"),
        (LABELS, lambda b: b[:-1] + b"\x0a", "label 10 is above 9"),
        (LABELS, lambda b: b[:4] + struct.pack(">I", 59) + b[8:-1], "59 labels for 60 images"),
        (TEST_LABELS, lambda b: idx_bytes(np.zeros(5)), "5 labels for 40 images"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, change, message):
    write_fashion(tmp_path)
    corrupt(tmp_path, name, change)
    with pytest.raises(DataError, match=message) as caught:
        load_images(fashion(tmp_path), seed=1)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b[:-6],
        lambda b: b[:100] + bytes(50) + b[150:],
        lambda b: b[:-8] + b"\x00" * 8,
        lambda b: b[:5],
        lambda b: b + b"rest",
    ],
)
def test_a_damaged_gzip_file_is_named(tmp_path, change):
    write_fashion(tmp_path, packed=True)
    corrupt(tmp_path, f"{IMAGES}.gz", change)
    with pytest.raises(DataError, match=f"{IMAGES}.gz"):
        load_images(fashion(tmp_path), seed=1)


@pytest.mark.parametrize(("key", "size"), [("train_size", 61), ("test_size", 41)])
def test_more_images_than_there_are_names_the_key(tmp_path, key, size):
    write_fashion(tmp_path)
    with pytest.raises(DataError, match=f"curvature.data.{key}: {size}, but"):
        load_images(fashion(tmp_path, **{key: size}), seed=1)


def read_or_named_error(path: Path, n_axes: int) -> np.ndarray | None:
    """The array, or None after a DataError that names the file; anything else fails the test."""
    try:
        return read_idx(path, n_axes=n_axes)
    except DataError as error:
        if str(path) not in str(error):
            raise AssertionError(f"{error} does not name {path}") from error
    return None


@settings(max_examples=200, deadline=None)
@given(
    head=st.sampled_from([b"", b"\0\0\x08\x03", b"\0\0\x08\x01", b"\x1f\x8b", b"\x1f\x8b\x08\x00"]),
    body=st.binary(max_size=80),
    packed=st.booleans(),
    n_axes=st.sampled_from([1, 3]),
)
def test_random_bytes_are_an_array_or_a_data_error(tmp_path_factory, head, body, packed, n_axes):
    path = tmp_path_factory.getbasetemp() / "random-idx"
    path.write_bytes(gzip.compress(head + body) if packed else head + body)
    array = read_or_named_error(path, n_axes)
    assert array is None or idx_bytes(array) == head + body


@settings(max_examples=100, deadline=None)
@given(position=st.integers(0, 199), value=st.integers(0, 255))
def test_a_packed_file_with_one_wrong_byte_never_gives_other_values(
    tmp_path_factory, position, value
):
    array = np.random.default_rng(1).integers(0, 10, 300).astype(np.uint8)
    content = bytearray(gzip.compress(idx_bytes(array), mtime=0))
    content[position % len(content)] = value
    path = tmp_path_factory.getbasetemp() / "wrong-byte.gz"
    path.write_bytes(bytes(content))
    found = read_or_named_error(path, 1)
    assert found is None or np.array_equal(found, array)


def test_a_folder_in_the_place_of_a_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path, n_axes=1)


def test_image_data_survives_the_disk_and_is_checked(tmp_path):
    images = load_images(data(), seed=1)
    path = tmp_path / "data.safetensors"
    write_arrays(images.as_arrays(), path, Provenance({}))
    again = ImageData.read(path)
    for name, array in images.as_arrays().items():
        np.testing.assert_array_equal(again.as_arrays()[name], array)
        assert again.as_arrays()[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_labels": None}, "arrays"),
        ({"train_images": np.zeros((100, 64), np.float32)}, "expected float32 .N, channels, S, S."),
        ({"test_images": np.zeros((50, 1, 8, 8))}, "float64"),
        ({"train_labels": np.zeros(99, np.int64)}, "train_labels"),
        ({"train_labels": np.full(100, 10)}, "outside 0..9"),
        ({"test_labels": np.full(50, -1)}, "outside 0..9"),
        ({"test_images": np.zeros((50, 3, 8, 8), np.float32)}, "differ in channels or size"),
        ({"n_classes": np.arange(2)}, "n_classes holds 2 numbers"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, changes, message):
    arrays = load_images(data(), seed=1).as_arrays() | changes
    path = tmp_path / "data.safetensors"
    kept = {name: array for name, array in arrays.items() if array is not None}
    write_arrays(kept, path, Provenance({}))
    with pytest.raises(DataError, match=message) as caught:
        ImageData.read(path)
    assert str(path) in str(caught.value)
