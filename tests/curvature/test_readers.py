"""Readers of image files against files made here in the real formats, whole and damaged."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from spectral_laws.curvature.datasets import places
from spectral_laws.curvature.datasets.cifar import cifar_pools
from spectral_laws.curvature.datasets.decode import decode_image
from spectral_laws.curvature.datasets.folders import imagenet_pools, tiny_imagenet_pools
from spectral_laws.curvature.datasets.idx import read_idx
from spectral_laws.curvature.datasets.images import load_image_files
from spectral_laws.curvature.datasets.pools import EncodedPool
from spectral_laws.errors import DataError
from spectral_laws.settings.data import CLASSES, ImageFiles

Result = TypeVar("Result")

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
WNIDS = ("n01443537", "n01629819", "n02056570")
FUZZ = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MUTATIONS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6)


def configured(dataset: str, folder: Path, **changes) -> ImageFiles:
    values = {"image_size": 8, "train_size": 50, "test_size": 32}
    return ImageFiles(dataset=dataset, folder=str(folder), **(values | changes))


def mutate(content: bytes, mutations: list[tuple[float, int]], cut: float) -> bytes:
    """``content`` with some bytes replaced, and cut short where ``cut`` is below 1."""
    result = bytearray(content)
    for place, value in mutations:
        result[int(place * (len(result) - 1))] = value
    return bytes(result[: int(cut * len(result)) + 1])


def result_or_named_error(call: Callable[[], Result], name: str | Path) -> Result | None:
    """What ``call`` gives, or None after a DataError that names the file; else the test fails."""
    try:
        return call()
    except DataError as error:
        if str(name) not in str(error):
            raise AssertionError(f"{error} does not name {name}") from error
    return None


# --- IDX -------------------------------------------------------------------------------------


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder: Path, *, n_train: int = 60, n_test: int = 40, packed: bool = False) -> None:
    generator = np.random.default_rng(0)
    for images, labels, n in ((IMAGES, LABELS, n_train), (TEST_IMAGES, TEST_LABELS, n_test)):
        arrays = {images: generator.integers(0, 256, (n, 28, 28)), labels: np.arange(n) % 10}
        for name, array in arrays.items():
            content = idx_bytes(array)
            path = folder / (f"{name}.gz" if packed else name)
            path.write_bytes(gzip.compress(content) if packed else content)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dataset", ["mnist", "fashion_mnist"])
def test_mnist_reads_plain_and_packed_files(tmp_path, dataset, packed):
    write_mnist(tmp_path, packed=packed)
    samples = load_image_files(configured(dataset, tmp_path, image_size=28), seed=3)
    assert samples.train_inputs.shape == (50, 1, 28, 28)
    assert samples.test_inputs.shape == (32, 1, 28, 28)
    # The training part holds 50 of the 60 training images, each with its own label.
    raw = np.random.default_rng(0).integers(0, 256, (60, 28, 28))
    values = samples.train_inputs[:, 0]
    pixels = np.rint((values - values.min()) / (values.max() - values.min()) * 255)
    indices = [int(np.flatnonzero((raw == image).all((1, 2)))[0]) for image in pixels]
    assert len(set(indices)) == 50
    np.testing.assert_array_equal(samples.train_targets, np.array(indices) % 10)


def test_a_missing_folder_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError) as caught:
        load_image_files(configured("fashion_mnist", tmp_path / "nowhere"), seed=1)
    message = str(caught.value)
    assert str(tmp_path / "nowhere" / IMAGES) in message
    assert "dataset-fashion-mnist" in message
    assert str(places.DEBIAN_FOLDER) in message
    assert all(name in message for name in (LABELS, TEST_IMAGES, TEST_LABELS))
    assert len(message.splitlines()) <= 5


def test_without_a_folder_debians_is_used_and_else_the_downloads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    debian = tmp_path / "debian"
    monkeypatch.setattr(places, "DEBIAN_FOLDER", debian)
    asked = ImageFiles(dataset="fashion_mnist", image_size=8, train_size=50, test_size=32)
    with pytest.raises(DataError, match=f"^data/fashion_mnist/{IMAGES}: no such file"):
        load_image_files(asked, seed=1)
    Path("data/fashion_mnist").mkdir(parents=True)
    write_mnist(Path("data/fashion_mnist"), packed=True)
    from_download = load_image_files(asked, seed=1)
    debian.mkdir()
    with pytest.raises(DataError, match=f"^{debian / IMAGES}: no such file"):
        load_image_files(asked, seed=1)
    write_mnist(debian)
    from_debian = load_image_files(asked, seed=1)
    np.testing.assert_array_equal(from_download.train_inputs, from_debian.train_inputs)
    asked = ImageFiles(dataset="mnist", image_size=8, train_size=50, test_size=32)
    with pytest.raises(DataError, match=f"^data/mnist/{IMAGES}: no such file"):
        load_image_files(asked, seed=1)


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
    ],
)
def test_a_damaged_idx_file_is_named(tmp_path, name, change, message):
    write_mnist(tmp_path)
    corrupt(tmp_path, name, change)
    with pytest.raises(DataError, match=f"{name}: .*{message}"):
        load_image_files(configured("mnist", tmp_path), seed=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b[: len(b) // 2] + bytes(64) + b[len(b) // 2 + 64 :],
        lambda b: b[:-8] + b"\x00" * 8,
        lambda b: b[:5],
        lambda b: b + b"rest",
    ],
)
def test_a_damaged_gzip_file_is_named(tmp_path, change):
    write_mnist(tmp_path, packed=True)
    corrupt(tmp_path, f"{IMAGES}.gz", change)
    with pytest.raises(DataError, match=f"{IMAGES}.gz"):
        load_image_files(configured("mnist", tmp_path), seed=1)


@pytest.mark.parametrize(("key", "size"), [("train_size", 61), ("test_size", 41)])
def test_more_images_than_there_are_names_the_key(tmp_path, key, size):
    write_mnist(tmp_path)
    with pytest.raises(DataError, match=f"^{key}: {size}, but {tmp_path}"):
        load_image_files(configured("mnist", tmp_path, **{key: size}), seed=1)


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
    array = result_or_named_error(lambda: read_idx(path, n_axes=n_axes), path)
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
    found = result_or_named_error(lambda: read_idx(path, n_axes=1), path)
    assert found is None or np.array_equal(found, array)


def test_a_folder_in_the_place_of_a_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path, n_axes=1)


# --- CIFAR -----------------------------------------------------------------------------------


def cifar_records(n: int, dataset: str, seed: int) -> tuple[bytes, np.ndarray, np.ndarray]:
    """A file, its images (n, 32, 32, 3) and its labels."""
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    n_classes = 10 if dataset == "cifar10" else 100
    labels = generator.integers(0, n_classes, n)
    content = b""
    for image, label in zip(images, labels, strict=True):
        coarse = [] if dataset == "cifar10" else [int(label) % 20]
        planes = image[:, :, 0].tobytes() + image[:, :, 1].tobytes() + image[:, :, 2].tobytes()
        content += bytes([*coarse, int(label)]) + planes
    return content, images, labels


def cifar_files(dataset: str, n: int = 3) -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    """Contents by file name; training images and labels in the order of the files."""
    layout = places.CIFAR[dataset]
    files, images, labels = {}, [], []
    for seed, name in enumerate(layout.train + layout.test):
        files[name], pictures, classes = cifar_records(n, dataset, seed)
        images.append(pictures)
        labels.append(classes)
    return files, np.concatenate(images[:-1]), np.concatenate(labels[:-1])


def tar_bytes(
    members: list[tuple[str, bytes]], *, links: tuple[tuple[str, str], ...] = ()
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def write_cifar_archive(folder: Path, dataset: str, files: dict[str, bytes]) -> Path:
    layout = places.CIFAR[dataset]
    members = [(f"{layout.folder}/{name}", content) for name, content in files.items()]
    members = [("../evil.bin", b"evil"), (f"{layout.folder}/readme.html", b"<html>"), *members]
    path = folder / layout.archive
    path.write_bytes(gzip.compress(tar_bytes(members)))
    return path


@pytest.mark.parametrize("place", ["archive", "folder", "subfolder"])
@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
def test_cifar_gives_every_pixel_and_label(tmp_path, dataset, place):
    files, images, labels = cifar_files(dataset)
    inside = tmp_path / "inside"
    folder = inside / places.CIFAR[dataset].folder if place == "subfolder" else inside
    folder.mkdir(parents=True)
    if place == "archive":
        write_cifar_archive(folder, dataset, files)
    else:
        for name, content in files.items():
            (folder / name).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    train, test = cifar_pools(inside, dataset)
    np.testing.assert_array_equal(train.labels, labels)
    assert train.n_classes == test.n_classes == (10 if dataset == "cifar10" else 100)
    expected = images.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(train.read(np.arange(len(labels)), 32), expected)
    assert len(test.labels) == 3
    assert sorted(tmp_path.rglob("*")) == before  # nothing is unpacked


def test_colours_are_standardised_one_by_one(tmp_path):
    files, images, _ = cifar_files("cifar10", n=40)
    write_cifar_archive(tmp_path, "cifar10", files)
    asked = configured("cifar10", tmp_path, image_size=32, train_size=200, test_size=40)
    samples = load_image_files(asked, seed=1)
    np.testing.assert_allclose(samples.train_inputs.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(samples.train_inputs.std((0, 2, 3)), 1, atol=1e-5)
    # All 200 training images were drawn: their moments undo the test images' scaling.
    mean, deviation = images.mean((0, 1, 2)), images.std((0, 1, 2))
    restored = samples.test_inputs * deviation[:, None, None] + mean[:, None, None]
    np.testing.assert_allclose(restored, np.rint(restored), atol=1e-3)
    _, raw, _ = cifar_records(40, "cifar10", 5)
    found = {image.tobytes() for image in np.rint(restored).astype(np.uint8)}
    assert found == {image.tobytes() for image in raw.transpose(0, 3, 1, 2).copy()}


def test_a_colour_without_variation_is_refused(tmp_path):
    files, _, _ = cifar_files("cifar10", n=1)
    black = bytes([1]) + bytes(1024)
    blank = dict.fromkeys(files, (black + b"x" * 1024 + b"y" * 1024) * 40)
    write_cifar_archive(tmp_path, "cifar10", blank)
    with pytest.raises(DataError, match="all training pixels of a channel are equal"):
        load_image_files(configured("cifar10", tmp_path, test_size=32, train_size=32), seed=1)


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
def test_missing_cifar_says_what_to_put_where(tmp_path, dataset):
    with pytest.raises(DataError) as caught:
        cifar_pools(tmp_path, dataset)
    layout = places.CIFAR[dataset]
    assert str(tmp_path / layout.archive) in str(caught.value)
    assert all(name in str(caught.value) for name in layout.train + layout.test)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("train.bin", lambda b: b[:-1], "whole number of records of 3074 bytes"),
        ("test.bin", lambda b: b"", "0 bytes are not a whole number"),
        ("train.bin", lambda b: b"\x14" + b[1:], "label 20 is above 19"),
        ("test.bin", lambda b: b[:1] + b"\x64" + b[2:], "label 100 is above 99"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_records_are_named(tmp_path, name, change, message, packed):
    files, _, _ = cifar_files("cifar100")
    files[name] = change(files[name])
    if packed:
        write_cifar_archive(tmp_path, "cifar100", files)
    else:
        for member, content in files.items():
            (tmp_path / member).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: .*{message}"):
        cifar_pools(tmp_path, "cifar100")


def test_a_missing_batch_is_named(tmp_path):
    files, _, _ = cifar_files("cifar10")
    del files["data_batch_3.bin"]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"data_batch_3.bin: cannot be read"):
        cifar_pools(tmp_path, "cifar10")
    write_cifar_archive(tmp_path, "cifar10", files)
    with pytest.raises(DataError, match=r"has no member cifar-10-batches-bin/data_batch_3.bin"):
        cifar_pools(tmp_path, "cifar10")


def test_hostile_archives_are_refused(tmp_path):
    files, _, _ = cifar_files("cifar100")
    members = [(f"cifar-100-binary/{name}", content) for name, content in files.items()]
    path = tmp_path / "cifar-100-binary.tar.gz"
    links = (("cifar-100-binary/test.bin", "/etc/passwd"),)
    path.write_bytes(gzip.compress(tar_bytes(members[:1], links=links)))
    with pytest.raises(DataError, match=r"test.bin is no regular file"):
        cifar_pools(tmp_path, "cifar100")
    path.write_bytes(gzip.compress(tar_bytes([*members, members[0]])))
    with pytest.raises(DataError, match=r"train.bin occurs twice"):
        cifar_pools(tmp_path, "cifar100")
    # A damaged checksum at the very end, behind everything that is needed.
    content = bytearray(gzip.compress(tar_bytes(members)))
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"damaged or not a .tar.gz archive"):
        cifar_pools(tmp_path, "cifar100")


@FUZZ
@given(mutations=MUTATIONS, cut=st.floats(0.2, 1.2), inside=st.booleans(), head=st.booleans())
def test_mutated_cifar_archives_give_arrays_or_a_data_error(tmp_path, mutations, cut, inside, head):
    files, _, _ = cifar_files("cifar100", n=1)
    members = [(f"cifar-100-binary/{name}", content) for name, content in files.items()]
    tar = tar_bytes(members)
    if head:  # aim at the first header block, where the meaning is
        mutations = [(place * 512 / len(tar), value) for place, value in mutations]
    content = gzip.compress(mutate(tar, mutations, cut)) if inside else gzip.compress(tar)
    path = tmp_path / "cifar-100-binary.tar.gz"
    path.write_bytes(content if inside else mutate(content, mutations, cut))
    pools = result_or_named_error(lambda: cifar_pools(tmp_path, "cifar100"), path)
    assert pools is None or all(pool.images.shape == (1, 3, 32, 32) for pool in pools)


# --- Encoded images --------------------------------------------------------------------------


def encoded(pixels: np.ndarray, kind: str = "JPEG", **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def test_png_is_exact_and_grey_becomes_three_equal_channels():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    np.testing.assert_array_equal(
        decode_image(encoded(pixels, "PNG"), name="x"), pixels.transpose(2, 0, 1)
    )
    grey = decode_image(encoded(pixels[:, :, 0], "PNG"), name="x")
    np.testing.assert_array_equal(grey, np.stack([pixels[:, :, 0]] * 3))


def png_of_size(width: int, height: int) -> bytes:
    """A PNG whose header announces another size."""
    content = bytearray(encoded(np.zeros((4, 4, 3), np.uint8), "PNG"))
    content[16:24] = struct.pack(">II", width, height)
    content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a" + bytes(50),
        encoded(np.zeros((64, 64, 3), np.uint8))[:200],
        encoded(np.zeros((8, 8, 3), np.uint8), "BMP"),
        png_of_size(60_000, 60_000),
        png_of_size(12_000, 12_000),
    ],
)
def test_what_is_no_image_is_named(content):
    with pytest.raises(DataError, match=r"^here/x.JPEG: not a readable JPEG or PNG image"):
        decode_image(content, name="here/x.JPEG")


@FUZZ
@given(mutations=MUTATIONS, cut=st.floats(0.1, 1.2), kind=st.sampled_from(["JPEG", "PNG"]))
def test_mutated_images_give_pixels_or_a_data_error(mutations, cut, kind):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 9, 3), dtype=np.uint8)
    content = mutate(encoded(pixels, kind), mutations, cut)
    image = result_or_named_error(lambda: decode_image(content, name="here"), "here: ")
    assert image is None or (image.dtype == np.uint8 and image.shape[0] == 3)


def test_only_the_drawn_images_are_fetched():
    fetched = []

    def fetch(name: str) -> bytes:
        fetched.append(name)
        return encoded(np.full((6, 6, 3), int(name), np.uint8), "PNG")

    names = [str(i) for i in range(10)]
    pool = EncodedPool(names, np.zeros(10, np.int64), 1, "here", fetch)
    images = pool.read(np.array([7, 2]), 6)
    assert fetched == ["7", "2"]
    np.testing.assert_array_equal(images[:, 0, 0, 0], [7, 2])


# --- Tiny-ImageNet and ImageNet --------------------------------------------------------------


def class_colour(wnid: str) -> np.ndarray:
    return np.array([60 * WNIDS.index(wnid) + 40, 200 - 70 * WNIDS.index(wnid), 100], np.uint8)


def tiny_files(n: int = 4, side: int = 64) -> dict[str, bytes]:
    """Tiny-ImageNet's files with ``n`` images per class and part, each of its class's colour."""
    files, lines = {}, []
    for wnid in WNIDS:
        content = encoded(np.broadcast_to(class_colour(wnid), (side, side, 3)).copy(), quality=95)
        for i in range(n):
            files[f"train/{wnid}/images/{wnid}_{i}.JPEG"] = content
            number = len(lines)
            files[f"val/images/val_{number}.JPEG"] = content
            lines.append(f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62")
        files[f"train/{wnid}/{wnid}_boxes.txt"] = b"boxes"
    files["val/val_annotations.txt"] = ("\n".join(lines) + "\n").encode()
    files["wnids.txt"] = "\n".join(WNIDS).encode()
    files["test/images/test_0.JPEG"] = b"not looked at"
    return files


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def write_zip(folder: Path, files: dict[str, bytes], *, also: tuple[str, ...] = ()) -> Path:
    path = folder / places.TINY_ARCHIVE
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"tiny-imagenet-200/{name}", content)
        for name in also:
            archive.writestr(name, b"evil")
    return path


def read_all_tiny(folder: Path) -> list[np.ndarray]:
    """Every image of both parts."""
    pools = tiny_imagenet_pools(folder)
    return [pool.read(np.arange(len(pool.labels)), 64) for pool in pools]


@pytest.mark.parametrize("place", ["archive", "folder", "subfolder"])
def test_tiny_imagenet_gives_every_image_with_its_class(tmp_path, place):
    inside = tmp_path / "inside"
    inside.mkdir()
    files = tiny_files()
    files[f"train/{WNIDS[1]}/images/{WNIDS[1]}_0.JPEG"] = encoded(np.full((64, 64), 99, np.uint8))
    if place == "archive":
        write_zip(inside, files, also=("../evil.JPEG", "/train/evil.JPEG", "train/evil.JPEG"))
    else:
        write_files(inside / "tiny-imagenet-200" if place == "subfolder" else inside, files)
    before = sorted(tmp_path.rglob("*"))
    for pool in tiny_imagenet_pools(inside):
        assert np.bincount(pool.labels).tolist() == [4, 4, 4]
        assert pool.n_classes == 3
        images = pool.read(np.arange(12), 64)
        colours = images.mean((2, 3))
        expected = np.stack([class_colour(WNIDS[label]) for label in pool.labels]).astype(float)
        if pool.names[0].startswith("train"):
            expected[4] = 99  # the grey one
        np.testing.assert_allclose(colours, expected, atol=3)
    assert sorted(tmp_path.rglob("*")) == before  # nothing is unpacked


def test_tiny_imagenet_becomes_samples(tmp_path, monkeypatch):
    write_zip(tmp_path, tiny_files(n=20))
    # Other tables call it a data set of 200 classes, so a part of it is refused.
    with pytest.raises(DataError, match=r"holds 3 classes, tiny_imagenet has 200") as caught:
        load_image_files(configured("tiny_imagenet", tmp_path), seed=1)
    assert str(tmp_path) in str(caught.value)
    monkeypatch.setitem(CLASSES, "tiny_imagenet", 3)
    samples = load_image_files(configured("tiny_imagenet", tmp_path, image_size=16), seed=1)
    assert samples.train_inputs.shape == (50, 3, 16, 16)
    assert samples.n_classes == 3
    # One colour per class, so the mean of the red channel tells the class.
    red = samples.test_inputs[:, 0].mean((1, 2))
    assert np.corrcoef(red, samples.test_targets)[0, 1] > 0.999


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("val/val_annotations.txt", b"", "val_annotations.txt has no line for val_0.JPEG"),
        ("val/val_annotations.txt", b"val_0.JPEG n01443537\n", "line 1 is not an image"),
        ("val/val_annotations.txt", b"\xff", "not plain text"),
        ("val/val_annotations.txt", b"val_0.JPEG\tn01443537\n" * 2, "two lines for val_0.JPEG"),
        ("train/n01443537/images/n01443537_0.JPEG", b"x", "n01443537_0.JPEG: not a readable"),
        (
            "val/images/val_3.JPEG",
            encoded(np.zeros((64, 32, 3), np.uint8)),
            "val_3.JPEG: 32 x 64 pixels, expected 64 x 64",
        ),
    ],
)
def test_what_is_wrong_in_tiny_imagenet_is_named(tmp_path, packed, name, content, message):
    files = tiny_files(n=2) | {name: content}
    if packed:
        write_zip(tmp_path, files)
    else:
        write_files(tmp_path, files)
    with pytest.raises(DataError, match=message) as caught:
        read_all_tiny(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_class_without_training_images_is_named(tmp_path):
    files = tiny_files(n=1)
    del files[f"train/{WNIDS[2]}/images/{WNIDS[2]}_0.JPEG"]
    write_zip(tmp_path, files)
    with pytest.raises(DataError, match=f"is of class {WNIDS[2]}, which train does not have"):
        tiny_imagenet_pools(tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_zip_archives_are_refused(tmp_path):
    path = write_zip(tmp_path, tiny_files(n=1))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tiny-imagenet-200/val/val_annotations.txt", b"")
    with pytest.raises(DataError, match=r"val_annotations.txt occurs twice"):
        tiny_imagenet_pools(tmp_path)
    files = tiny_files(n=1)
    files["val/images/val_0.JPEG"] = bytes(65 << 20)  # a small member that unpacks to 65 MiB
    path = write_zip(tmp_path, files)
    assert path.stat().st_size < 200_000
    _, test = tiny_imagenet_pools(tmp_path)
    with pytest.raises(DataError, match=r"val_0.JPEG has 68157440 bytes, too many"):
        test.read(np.array([0]), 64)
    path.write_bytes(b"not a zip archive")
    with pytest.raises(DataError, match="damaged or not a zip archive"):
        tiny_imagenet_pools(tmp_path)


@FUZZ
@given(mutations=MUTATIONS, cut=st.floats(0.5, 2), tail=st.booleans())
def test_mutated_zip_archives_give_images_or_a_data_error(tmp_path_factory, mutations, cut, tail):
    folder = tmp_path_factory.mktemp("zip", numbered=True)
    path = write_zip(folder, tiny_files(n=1))
    content = path.read_bytes()
    if tail:  # aim at the directory at the end, where the meaning is
        mutations = [(1 - place * 0.3, value) for place, value in mutations]
    path.write_bytes(mutate(content, mutations, cut))
    shapes = result_or_named_error(lambda: [p.shape for p in read_all_tiny(folder)], path)
    assert shapes is None or all(shape[1:] == (3, 64, 64) for shape in shapes)


def test_imagenet_reads_class_folders_and_cuts_the_middle_square(tmp_path, monkeypatch):
    monkeypatch.setitem(CLASSES, "imagenet", 2)
    ramp = np.broadcast_to(np.arange(160, dtype=np.uint8)[None, :, None], (40, 160, 3)).copy()
    for part, count in (("train", 40), ("val", 35)):
        for number in range(count):
            wnid = WNIDS[number % 2]
            name = f"{part}/{wnid}/ILSVRC2012_{part}_{number:08d}.JPEG"
            write_files(tmp_path, {name: encoded(ramp, "PNG")})
    (tmp_path / "train" / "readme.txt").write_text("not a class")
    train, test = imagenet_pools(tmp_path)
    assert (len(train.labels), len(test.labels)) == (40, 35)
    assert np.bincount(train.labels).tolist() == [20, 20]
    image = train.read(np.array([0]), 20)[0]
    # Half size; columns 60 to 100 of the ramp remain.
    np.testing.assert_allclose(image[:, 5], np.tile(60.5 + 2 * np.arange(20), (3, 1)), atol=0.6)
    samples = load_image_files(
        configured("imagenet", tmp_path, image_size=20, train_size=32), seed=1
    )
    assert samples.train_inputs.shape == (32, 3, 20, 20)


def test_missing_folders_say_what_to_put_where(tmp_path):
    with pytest.raises(DataError, match=r"/train: no such folder\n.*ImageNet-1K"):
        imagenet_pools(tmp_path)
    write_files(tmp_path, {"train/dogs/a.JPEG": b"", "val/dogs/a.JPEG": b""})
    with pytest.raises(DataError, match="images of 0 classes"):
        imagenet_pools(tmp_path)
    with pytest.raises(DataError, match=r"tiny-imagenet-200.zip: no such file"):
        tiny_imagenet_pools(tmp_path / "nowhere")
