"""Downloads: the rule against a server of this machine, and what it does without one."""

import gzip
import hashlib
import http.server
import io
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from spectral_laws.curvature.datasets import downloads as registry
from spectral_laws.curvature.datasets import places
from spectral_laws.curvature.datasets.downloads import (
    Download,
    archives_of,
    downloads,
    missing_downloads,
    verify_download,
)
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.errors import DataError
from spectral_laws.settings.data import ImageFiles, Text

ARCHIVE = "cifar-10-binary.tar.gz"
DATA = '{"dataset": "cifar10", "image_size": 32, "train_size": 40, "test_size": 32}'
# The rule file between the few names that it uses, so that its tests need no other rule.
SNAKEFILE = f"""
import shlex, sys
from functools import cache
from pathlib import Path
from snakemake.exceptions import WorkflowError
from spectral_laws.settings.base import parse_settings
from spectral_laws.settings.data import ImageFiles
from spectral_laws.sources import source_files

PYTHON = shlex.quote(sys.executable)
SCRIPTS = "workflow/scripts"


def sources(script):
    return [str(path) for path in source_files(Path(workflow.basedir, SCRIPTS, script))]


include: "workflow/rules/downloads.smk"


rule prepare_data:
    input:
        archives=lambda wildcards: archives_of(parse_settings(ImageFiles, '''{DATA}''')),
    output:
        "data.safetensors",
    params:
        data='''{DATA}''',
    shell:
        "{{PYTHON}} {{SCRIPTS}}/prepare_data.py --data {{params.data:q}} --output {{output}}"
"""


def cifar_archive() -> bytes:
    """A small archive in the real format: 20 images in each of the files, labels 0..9."""
    generator = np.random.default_rng(0)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
            records = generator.integers(0, 256, (40, 3073), dtype=np.uint8)
            records[:, 0] %= 10
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = records.size
            archive.addfile(info, io.BytesIO(records.tobytes()))
    return gzip.compress(buffer.getvalue())


class Pipeline:
    """A folder with the rule, whose registry holds one small archive at an address of choice."""

    def __init__(self, folder: Path, root: Path, url: str, content: bytes) -> None:
        self.folder = folder
        for part in ("src", "workflow"):
            shutil.copytree(root / part, folder / part)
        (folder / "Snakefile").write_text(SNAKEFILE)
        (folder / "src/spectral_laws/curvature/datasets/downloads.yaml").write_text(
            f"cifar10:\n  - url: {url}\n    size: {len(content)}\n"
            f"    sha256: {hashlib.sha256(content).hexdigest()}\n"
        )

    def snakemake(self, *arguments: str, succeeds: bool = True) -> str:
        result = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "1", "data.safetensors", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
            timeout=300,
        )
        output = result.stdout + result.stderr
        assert (result.returncode == 0) == succeeds, output
        return output

    def files(self) -> list[str]:
        """What lies where data belong, or is left of a transfer."""
        places_ = (self.folder / "data", self.folder / ".snakemake" / "storage")
        return sorted(p.name for place in places_ for p in place.rglob("*") if p.is_file())


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Not into the tests' output."""


@pytest.fixture
def server(tmp_path):
    """A server of the folder ``www``; its address, and how to end it."""
    (tmp_path / "www").mkdir()
    handler = partial(_Handler, directory=str(tmp_path / "www"))
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()

    def stop() -> None:
        httpd.shutdown()
        httpd.server_close()

    yield f"http://127.0.0.1:{httpd.server_address[1]}/{ARCHIVE}", stop
    stop()


@pytest.mark.slow
def test_an_archive_is_downloaded_once_and_read(tmp_path, root, server):
    url, stop = server
    content = cifar_archive()
    (tmp_path / "www" / ARCHIVE).write_bytes(content)
    folder = tmp_path / "project"
    folder.mkdir()
    pipeline = Pipeline(folder, root, url, content)
    pipeline.snakemake()
    assert (folder / "data" / "cifar10" / ARCHIVE).read_bytes() == content
    assert pipeline.files() == [ARCHIVE]
    samples = Samples.read(folder / "data.safetensors")
    assert samples.train_inputs.shape == (40, 3, 32, 32)
    assert samples.n_classes == 10
    # From here on the network is not asked, and nothing is run again.
    stop()
    assert "Nothing to be done" in pipeline.snakemake()


@pytest.mark.slow
def test_a_wrong_sum_stops_and_leaves_nothing(tmp_path, root, server):
    content = cifar_archive()
    (tmp_path / "www" / ARCHIVE).write_bytes(content[:-1] + b"\x01")
    folder = tmp_path / "project"
    folder.mkdir()
    pipeline = Pipeline(folder, root, server[0], content)
    output = pipeline.snakemake(succeeds=False)
    assert "verify_download" in output
    assert "most recent call" not in output
    assert pipeline.files() == []
    log = (folder / "logs" / "downloads" / "cifar10" / f"{ARCHIVE}.log").read_text()
    assert f"data/cifar10/{ARCHIVE}: the download is not the file it must be" in log
    assert hashlib.sha256(content).hexdigest() in log
    assert hashlib.sha256(content[:-1] + b"\x01").hexdigest() in log


@pytest.mark.slow
def test_a_file_that_the_server_lacks_is_named(tmp_path, root, server):
    folder = tmp_path / "project"
    folder.mkdir()
    pipeline = Pipeline(folder, root, server[0], b"content")
    output = pipeline.snakemake(succeeds=False)
    assert f"{server[0]}: cannot be downloaded (HTTP status 404)" in output


@pytest.mark.slow
def test_without_network_the_message_says_what_to_put_where(tmp_path, root, server):
    url, stop = server
    stop()
    folder = tmp_path / "project"
    folder.mkdir()
    content = cifar_archive()
    pipeline = Pipeline(folder, root, url, content)
    plan = pipeline.snakemake("--dry-run")  # planning needs no network
    assert f"data/cifar10/{ARCHIVE}" in plan
    output = pipeline.snakemake(succeeds=False)
    assert f"{url}: cannot be downloaded (ConnectionError; no network?)" in output
    assert f"put {ARCHIVE} into data/cifar10/ yourself" in output
    assert hashlib.sha256(content).hexdigest() in output
    assert "most recent call" not in output
    # The advice works.
    (folder / "data" / "cifar10").mkdir(parents=True)
    (folder / "data" / "cifar10" / ARCHIVE).write_bytes(content)
    pipeline.snakemake()
    assert (folder / "data.safetensors").is_file()


@pytest.mark.slow
def test_the_script_refuses_a_wrong_file_without_snakemake(tmp_path, root):
    source, target = tmp_path / "source", tmp_path / "data" / "target"
    source.write_bytes(b"content")
    sums = {"right": hashlib.sha256(b"content").hexdigest(), "wrong": "0" * 64}
    script = [sys.executable, str(root / "workflow" / "scripts" / "verify_download.py")]
    script += ["--download", str(source), "--size", "7", "--output", str(target), "--sha256"]
    refused = subprocess.run([*script, sums["wrong"]], capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {target}: the download is not")
    assert len(refused.stderr.splitlines()) == 3
    assert not list(target.parent.iterdir())
    subprocess.run([*script, sums["right"]], check=True)
    assert target.read_bytes() == b"content"


@pytest.mark.parametrize(("size", "content"), [(8, b"content"), (6, b"content"), (7, b"Content")])
def test_size_and_sum_must_both_be_right(tmp_path, size, content):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    target.write_bytes(b"older")
    expected = hashlib.sha256(b"content").hexdigest()
    with pytest.raises(DataError, match=f"expected {size} bytes") as caught:
        verify_download(source, target, size=size, sha256=expected)
    assert f"found    7 bytes, SHA-256 {hashlib.sha256(content).hexdigest()}" in str(caught.value)
    assert target.read_bytes() == b"older"
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_a_download_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.*cannot be copied"):
        verify_download(tmp_path / "nowhere", tmp_path / "target", size=1, sha256="0" * 64)


def test_the_registry_has_the_files_that_the_readers_look_for():
    names = {dataset: [d.name for d in files] for dataset, files in downloads().items()}
    idx = [f"{name}.gz" for part in places.IDX_FILES.values() for name in part]
    assert names == {
        "mnist": idx,
        "fashion_mnist": idx,
        "cifar10": [places.CIFAR["cifar10"].archive],
        "cifar100": [places.CIFAR["cifar100"].archive],
        "tiny_imagenet": [places.TINY_ARCHIVE],
    }
    files = [download for entries in downloads().values() for download in entries]
    assert len({d.sha256 for d in files}) == len({d.path for d in files}) == len(files)
    assert all(d.url.startswith(("https://", "http://")) for d in files)


@pytest.mark.parametrize(("sha256", "size"), [("0" * 63, 1), ("A" * 64, 1), ("0" * 64, 0)])
def test_a_registry_entry_without_a_sum_is_refused(sha256, size):
    with pytest.raises(ValueError, match="needs a SHA-256"):
        Download("cifar10", "http://127.0.0.1/x", size, sha256)


def image_files(dataset: str, folder: str | None = None) -> ImageFiles:
    return ImageFiles(dataset=dataset, folder=folder, image_size=8, train_size=32, test_size=32)


def test_archives_are_asked_for_where_nothing_else_provides_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "DEBIAN_FOLDER", tmp_path / "debian")
    assert archives_of(image_files("cifar10")) == [f"data/cifar10/{ARCHIVE}"]
    assert archives_of(image_files("cifar10", "/somewhere")) == []
    assert archives_of(image_files("imagenet")) == []
    assert archives_of(image_files("digits")) == []
    text = Text(dataset="text", file=None, context=8, train_size=32, test_size=32)
    assert archives_of(text) == []
    assert len(archives_of(image_files("fashion_mnist"))) == 4
    (tmp_path / "debian").mkdir()
    assert archives_of(image_files("fashion_mnist")) == []
    assert len(archives_of(image_files("mnist"))) == 4


def test_the_answer_stays_the_same_once_the_archive_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = archives_of(image_files("cifar10"))
    path = Path(before[0])
    path.parent.mkdir(parents=True)
    path.write_bytes(b"archive")
    assert archives_of(image_files("cifar10")) == before
    assert path not in [download.path for download in missing_downloads()]
    # Also if it is unpacked beside; but unpacked files alone need no archive.
    (path.parent / "test_batch.bin").write_bytes(b"")
    assert archives_of(image_files("cifar10")) == before
    path.unlink()
    assert archives_of(image_files("cifar10")) == []


@pytest.mark.parametrize(
    ("dataset", "unpacked", "left"),
    [
        ("mnist", "train-images-idx3-ubyte", 3),
        ("cifar100", "cifar-100-binary/train.bin", 0),
        ("tiny_imagenet", "tiny-imagenet-200/train/n01443537/x", 0),
    ],
)
def test_unpacked_files_need_no_archive(tmp_path, monkeypatch, dataset, unpacked, left):
    monkeypatch.chdir(tmp_path)
    path = Path("data") / dataset / unpacked
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert len(archives_of(image_files(dataset))) == left


def test_every_registered_data_set_has_a_reader(monkeypatch):
    monkeypatch.setattr(
        registry, "downloads", lambda: {"digits": (Download("digits", "h", 1, "0" * 64),)}
    )
    with pytest.raises(ValueError, match="digits: no reader is known"):
        archives_of(image_files("digits"))
