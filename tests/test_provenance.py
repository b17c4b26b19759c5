"""Digests that tell a damaged file from a sound one, and records that cannot be changed unseen."""

import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.artifacts import read_provenance, read_table, write_arrays, write_table
from spectral_laws.errors import DataError
from spectral_laws.provenance import (
    Provenance,
    arrays_digest,
    commit_of,
    forget_inputs,
    seal,
    table_digest,
    unseal,
)

CELLS = st.one_of(
    st.lists(st.floats(allow_infinity=False), min_size=1, max_size=6),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6),
    st.lists(st.text(max_size=5), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=6),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=6),
)


@given(values=CELLS)
def test_a_table_reads_back_with_the_digest_it_was_written_with(
    tmp_path_factory, loose_schema, values
):
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    table = pd.DataFrame({"x": values, "i": range(len(values))})
    write_table(table, path, Provenance(parameters={}), loose_schema(table))
    assert table_digest(read_table(path)) == read_provenance(path)["content"]


def test_a_tables_digest_sees_every_change_of_names_kinds_order_and_values():
    frame = pd.DataFrame
    tables = [
        frame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        frame({"c": [1.0, 2.0], "b": [3.0, 4.0]}),
        frame({"b": [3.0, 4.0], "a": [1.0, 2.0]}),
        frame({"a": [2.0, 1.0], "b": [4.0, 3.0]}),
        frame({"a": [1.0], "b": [3.0]}),
        frame({"a": [1.0, np.nextafter(2.0, 3.0)], "b": [3.0, 4.0]}),
        frame({"a": [3.0, 4.0], "b": [1.0, 2.0]}),
        *(frame({"x": values}) for values in (
            [1, 0], [1.0, 0.0], [1.0, -0.0], [1.0, np.nan], [True, False], ["1", "0"], ["10", ""],
            ["", "10"], ["1", None], ["1", "nan"], ["1", "None"], [],
        )),
        frame({"x": np.array([1, 0], dtype=np.int32)}),
        frame({"x": pd.array([1, 0], dtype="Int64")}).rename(columns={"x": "y"}),
        frame({"x": pd.array([1, None], dtype="Int64")}),
    ]  # fmt: skip
    assert len({table_digest(table) for table in tables}) == len(tables)
    for table in tables:
        assert table_digest(table.copy()) == table_digest(table)


def test_an_arrays_digest_sees_names_types_shapes_and_values_but_not_order():
    x, y = np.arange(6, dtype=np.float32), np.ones((2, 3), dtype=np.float32)
    same = [arrays_digest({"x": x, "y": y}), arrays_digest({"y": y, "x": x})]
    assert same[0] == same[1]
    others = [
        {"x": x, "z": y},
        {"x": x.astype(np.float64), "y": y},
        {"x": x.reshape(2, 3), "y": y},
        {"x": x[::-1], "y": y},
        {"x": y.reshape(6), "y": x.reshape(2, 3)},
        {"x": x},
        {"x": x, "y": np.float32(1.0).reshape(())},
    ]
    assert len({same[0], *(arrays_digest(other) for other in others)}) == 1 + len(others)


def test_a_changed_record_is_refused():
    sealed = seal({"seed": 1})
    assert unseal(sealed, "f") == {"seed": 1}
    assert unseal({"pandas": "{}"}, "f") is None
    for changed in (
        sealed | {"spectral_laws": sealed["spectral_laws"].replace("1", "2")},
        {"spectral_laws": sealed["spectral_laws"]},
        {"spectral_laws_sha256": sealed["spectral_laws_sha256"]},
    ):
        with pytest.raises(
            DataError, match=r"f: (damaged, its provenance|written by an older version)"
        ):
            unseal(changed, "f")


def test_a_record_says_what_was_read_and_what_it_cost(tmp_path):
    forget_inputs()
    started = Provenance(parameters={"gamma": 0.4}, seed=5)
    first, second = tmp_path / "first.parquet", tmp_path / "second.safetensors"
    table = pd.DataFrame({"x": [1.0]})
    write_table(table, first, started)
    assert read_provenance(first)["inputs"] == {}
    write_arrays({"x": read_table(first)["x"].to_numpy()}, second, started)
    record = read_provenance(second)
    assert record["inputs"] == {first.as_posix(): table_digest(table)}
    assert 0 < record["seconds"] < 600
    assert 10 < record["peak_memory_mb"] < 20_000
    assert record["threads"] >= 1
    # What is the same in every run holds no cost.
    assert not {"seconds", "peak_memory_mb", "threads"} & set(started.facts())
    forget_inputs()
    assert started.facts()["inputs"] == {}


@pytest.mark.slow
def test_a_commit_is_recorded_only_where_git_tracks_the_package(tmp_path):
    def git(*words):
        me = ["-c", "user.name=x", "-c", "user.email=x@x"]
        output = subprocess.run(["git", *me, *words], cwd=tmp_path, check=True, capture_output=True)
        commit_of.cache_clear()
        return output.stdout.decode().strip()

    package = tmp_path / "venv" / "spectral_laws"
    package.mkdir(parents=True)
    file = package / "provenance.py"
    file.write_text("x = 1\n")
    assert commit_of(file) is None  # no repository
    git("init")
    (tmp_path / ".gitignore").write_text("venv/\n")
    git("add", ".gitignore")
    git("commit", "-m", "another project")
    assert commit_of(file) is None  # ignored by it
    (tmp_path / ".gitignore").unlink()
    assert commit_of(file) is None  # not ignored, not tracked
    git("reset", "--hard")
    git("add", "--force", str(file))
    git("commit", "-m", "the package itself")
    assert commit_of(file) == git("rev-parse", "HEAD")
    file.write_text("x = 2\n")
    commit_of.cache_clear()
    assert commit_of(file) == git("rev-parse", "HEAD") + "-dirty"
