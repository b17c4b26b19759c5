"""Damaged files, byte by byte: the value that was written, or an error that names the file.

Image files and archives are fuzzed beside their readers, in ``tests/curvature/test_readers.py``.
Examples are the same in every run.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectral_laws.artifacts import (
    read_arrays,
    read_provenance,
    read_table,
    write_arrays,
    write_table,
)
from spectral_laws.config import load_config
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.datasets.text import load_text
from spectral_laws.curvature.training.checkpoints import pack_networks, read_networks
from spectral_laws.errors import ConfigError, SpectralLawsError
from spectral_laws.provenance import Provenance
from spectral_laws.settings.base import parse_settings
from spectral_laws.settings.curvature import Measurement, Model
from spectral_laws.settings.data import Text
from spectral_laws.settings.yaml_files import read_yaml

pytestmark = pytest.mark.slow

# One function reads many examples into one folder: each overwrites the file of the one before.
FUZZ = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}
PLACES = st.floats(0, 1, exclude_max=True)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), PLACES, st.integers(0, 255)),
        st.tuples(st.just("flip"), PLACES, st.integers(0, 7)),
        st.tuples(st.just("cut"), PLACES, st.integers(0, 64)),
        st.tuples(st.just("add"), PLACES, st.binary(max_size=8)),
        st.tuples(st.just("end"), PLACES, st.just(0)),
    ),
    min_size=1,
    max_size=3,
)


def edit(content: bytes, edits: list[tuple[str, float, Any]]) -> bytes:
    """``content`` with bytes set, a bit flipped, some taken out or put in, or cut short."""
    result = bytearray(content)
    for kind, place, what in edits:
        at = int(place * len(result))
        if kind == "set" and result:
            result[at] = what
        elif kind == "flip" and result:
            result[at] ^= 1 << what
        elif kind == "cut":
            del result[at : at + what]
        elif kind == "add":
            result[at:at] = what
        elif kind == "end":
            del result[at:]
    return bytes(result)


def value_or_error_that_names(path: Path, read: Callable[[], Any]) -> Any:
    """What ``read`` gives; None after an error of this project that names the file."""
    try:
        return read()
    except SpectralLawsError as error:
        if str(path) not in str(error):
            raise AssertionError(f"{error} does not name {path}") from error
    return None


# --- Tables and arrays -------------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "model": ["mlp", "vgg11", "mlp"] * 4,
        "seed": np.arange(12),
        "alpha": np.linspace(0.5, 2.5, 12),
        "final": np.arange(12) % 2 == 0,
        "note": [None, "none", "fit"] * 4,
        "low": [math.nan, 0.25, 1e-300] * 4,
    }
)
ARRAYS = {
    "weight": np.linspace(-1, 1, 60, dtype=np.float32).reshape(3, 4, 5),
    "counts": np.arange(7),
    "scalar": np.array(0.125),
    "flags": np.array([True, False]),
}
PROVENANCE = Provenance({"gamma": 0.4}, 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, loose_schema) -> dict[str, bytes]:
    """Contents of sound files, by suffix."""
    folder = tmp_path_factory.mktemp("whole")
    write_table(TABLE, folder / "t.parquet", PROVENANCE, loose_schema(TABLE))
    write_arrays(ARRAYS, folder / "a.safetensors", PROVENANCE)
    return {path.suffix: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=250, **FUZZ)
@given(edits=EDITS)
def test_a_damaged_table_is_the_same_table_or_an_error(whole, tmp_path, edits):
    path = tmp_path / "t.parquet"
    path.write_bytes(edit(whole[".parquet"], edits))
    found = value_or_error_that_names(path, lambda: read_table(path))
    if found is not None:
        pd.testing.assert_frame_equal(found, TABLE)


@settings(max_examples=250, **FUZZ)
@given(edits=EDITS)
def test_damaged_arrays_are_the_same_arrays_or_an_error(whole, tmp_path, edits):
    path = tmp_path / "a.safetensors"
    path.write_bytes(edit(whole[".safetensors"], edits))
    found = value_or_error_that_names(path, lambda: read_arrays(path))
    if found is not None:
        assert set(found) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


@settings(max_examples=200, **FUZZ)
@given(edits=EDITS, suffix=st.sampled_from([".parquet", ".safetensors"]))
def test_a_damaged_record_is_the_same_record_or_an_error(whole, tmp_path, edits, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(whole[suffix])
    expected = read_provenance(path)
    path.write_bytes(edit(whole[suffix], edits))
    found = value_or_error_that_names(path, lambda: read_provenance(path))
    assert found in (None, expected)


def test_every_single_bit_of_a_table_and_of_arrays_counts(whole, tmp_path):
    # One bit of every 19th byte, beside the random ones above.
    for suffix, read, equal in (
        (".parquet", read_table, TABLE.equals),
        (".safetensors", read_arrays, lambda found: found.keys() == ARRAYS.keys() and all(
            np.array_equal(found[name], array) for name, array in ARRAYS.items())),
    ):  # fmt: skip
        path = tmp_path / f"bits{suffix}"
        refused = 0
        for place in range(0, len(whole[suffix]), 19):
            content = bytearray(whole[suffix])
            content[place] ^= 1 << (place % 8)
            path.write_bytes(bytes(content))
            found = value_or_error_that_names(path, lambda read=read, path=path: read(path))
            refused += found is None
            assert found is None or equal(found), (suffix, place)
        assert refused > 0.2 * len(whole[suffix]) / 19


NAMES = st.one_of(
    st.text(max_size=12),
    st.builds("{}/{}/{}".format, st.integers(-2, 10**12), st.integers(0, 12), st.text(max_size=4)),
)


@settings(max_examples=150, **FUZZ)
@given(names=st.lists(NAMES, max_size=3, unique=True))
def test_arrays_of_any_names_are_networks_or_an_error(tmp_path, names):
    path = tmp_path / "networks.safetensors"
    names = [name for name in names if name.isprintable()]
    arrays = {name: np.full(2, i, np.float32) for i, name in enumerate(names)}
    write_arrays(arrays, path, PROVENANCE)
    networks = value_or_error_that_names(path, lambda: read_networks(path))
    if networks is not None:
        again = pack_networks(networks)
        assert {name: array[0] for name, array in again.items()} == dict(
            zip(names, range(len(names)), strict=True)
        )


@settings(max_examples=150, **FUZZ)
@given(
    shape=st.one_of(
        st.sampled_from([(2, 3, 8, 8), (5, 3, 8, 8), (2,), (1,), ()]),
        st.lists(st.integers(0, 3), max_size=5),
    ),
    dtype=st.sampled_from(["float32", "int64", "float64", "int32", "bool"]),
    replaced=st.sampled_from(["train_inputs", "test_inputs", "train_targets", "n_classes"]),
    value=st.sampled_from([0, 1, -1, 5, 200]),
)
def test_samples_of_any_shape_are_samples_or_an_error(tmp_path, shape, dtype, replaced, value):
    images = np.linspace(0, 1, 2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
    labels = np.array([0, 1])
    sound = Samples(images, labels, images, labels, 4).as_arrays()
    path = tmp_path / "data.safetensors"
    write_arrays(sound | {replaced: np.full(shape, value).astype(dtype)}, path, PROVENANCE)
    samples = value_or_error_that_names(path, lambda: Samples.read(path))
    if samples is not None:
        assert samples.train_inputs.size > 0
        assert samples.train_targets.max() < samples.n_classes


# --- Text --------------------------------------------------------------------------------------


@settings(max_examples=150, **FUZZ)
@given(edits=EDITS)
def test_a_damaged_text_is_windows_of_it_or_an_error(tmp_path, edits):
    content = "".join(chr(97 + i * i % 23) + "é" * (i % 7 == 0) for i in range(2200)).encode()
    path = tmp_path / "text.txt"
    path.write_bytes(edit(content, edits))
    asked = Text(dataset="text", file=str(path), context=4, train_size=100, test_size=32)
    samples = value_or_error_that_names(path, lambda: load_text(asked, seed=1))
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        assert samples is None
    else:
        # Windows of context + 1 characters from an offset below it.
        enough = int(0.9 * len(text)) // 5 - 1 >= 100 and len(text) // 50 - 2 >= 32
        assert samples is not None or not enough
        assert samples is None or samples.n_tokens <= len(set(text)) + 1


# --- Configuration -----------------------------------------------------------------------------

INSERTED = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ": ", "- ", "? ", "&a ", "*a ", "<<: *a", "!!set ", "!x "),
        *("null", ".nan", ".inf", "1e400", "-0", "0x10", "010", "1:30", "2020-01-01", "yes", "~"),
        *("'", '"', '"\\0"', '"\\ud800"', "\n", "\n  ", "\t", "#", "|", ">", "%YAML 1.2\n", "---"),
        *("\0", "\ufeff", "é", "__use_yte__: true\n", "9" * 30, "9" * 5000),
    ]
)
LINE_EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("delete"), PLACES, st.just("")),
        st.tuples(st.just("double"), PLACES, st.just("")),
        st.tuples(st.just("swap"), PLACES, st.just("")),
        st.tuples(st.just("insert"), PLACES, INSERTED),
        st.tuples(st.just("replace"), PLACES, INSERTED),
    ),
    min_size=1,
    max_size=3,
)


def edit_text(text: str, edits: list[tuple[str, float, str]]) -> str:
    """``text`` with lines deleted, doubled or swapped, and words put in or exchanged."""
    for kind, place, what in edits:
        lines = text.splitlines(keepends=True)
        at = int(place * len(lines)) if lines else 0
        if kind == "insert" or not lines:
            at = int(place * len(text))
            text = text[:at] + what + text[at:]
            continue
        if kind == "delete":
            del lines[at]
        elif kind == "double":
            lines[at:at] = [lines[at]]
        elif kind == "swap":
            lines[at - 1], lines[at] = lines[at], lines[at - 1]
        else:  # the value of a line
            key, colon, _ = lines[at].partition(": ")
            lines[at] = f"{key}{colon}{what}\n"
        text = "".join(lines)
    return text


@settings(max_examples=50, **FUZZ)
@given(edits=LINE_EDITS)
def test_a_changed_configuration_is_read_as_yaml_does_or_refused(root, tmp_path, edits):
    path = tmp_path / "config.yaml"
    path.write_text(
        edit_text((root / "config.yaml").read_text(), edits), encoding="utf-8", newline=""
    )
    config = value_or_error_that_names(path, lambda: load_config(path))
    if config is None:
        return
    # What is accepted is what an independent reading gives, key by key.
    expected = yaml.safe_load(path.read_text(encoding="utf-8"))
    for section in ("preset", "seed", "device", "intervals"):
        found = getattr(config, section)
        assert (found if isinstance(found, str | int) else found.model_dump()) == expected[section]
    for section in ("population", "evaluation"):
        found = json.loads(getattr(config.recovery, section).model_dump_json())
        assert found == expected["recovery"][section]


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**6), 10**6),
        st.floats(allow_nan=False, width=32),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=6), inner, max_size=3),
    ),
    max_leaves=12,
)


@settings(max_examples=150, **FUZZ)
@given(content=st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=6), PLAIN, max_size=4))
def test_plain_values_come_back_from_yaml(tmp_path, content):
    path = tmp_path / "plain.yaml"
    # PyYAML writes shared parts with anchors, and numbers as YAML 1.1 reads them.
    path.write_text(yaml.safe_dump({**content, "again": content}, allow_unicode=True))
    assert read_yaml(path) == {**content, "again": content}


# --- Settings of the scripts -------------------------------------------------------------------

SOUND = {
    Model: {"architecture": "mlp", "data": "x", "training": "x", "width": 4, "depth": 1},
    Measurement: {"batch_size": 40, "top_k": 5, "chunk_size": 16, "method": "auto"},
}


def settings_or_message(parse: Callable[[], Any]) -> tuple[Any, str]:
    """What ``parse`` gives, or None and the message of its ConfigError."""
    try:
        return parse(), ""
    except ConfigError as error:
        return None, str(error)


@settings(max_examples=200, **FUZZ)
@given(model=st.sampled_from([*SOUND]), value=PLAIN, place=PLACES, edits=EDITS)
def test_changed_settings_come_back_or_name_the_key(model, value, place, edits):
    sound = SOUND[model]
    key = [*sound][int(place * len(sound))]
    text = json.dumps(sound | {key: value})
    found, message = settings_or_message(lambda: parse_settings(model, text))
    if found is None:  # a rule between several keys is told of the whole
        assert f"{key}: " in message or "(top level): " in message
    else:
        assert getattr(found, key) == value
    damaged = edit(json.dumps(sound).encode(), edits).decode("utf-8", "replace")
    found, message = settings_or_message(lambda: parse_settings(model, damaged))
    if found is None:
        assert "wrong setting(s)\n  " in message
    else:
        assert json.loads(damaged).items() <= json.loads(found.model_dump_json()).items()
