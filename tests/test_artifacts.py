import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spectral_laws import artifacts
from spectral_laws.artifacts import (
    Provenance,
    check_finite,
    read_arrays,
    read_provenance,
    read_table,
    write_arrays,
    write_table,
)
from spectral_laws.atomic import atomic_path
from spectral_laws.cli import run
from spectral_laws.errors import DataError, NumericalError

PROVENANCE = Provenance(parameters={"gamma": 0.4}, seed=3)


@pytest.fixture
def table():
    return pd.DataFrame({"n": [1, 2], "mse": [0.5, 0.25], "name": ["a", "b"]})


def test_table_round_trip_with_provenance(tmp_path, table):
    path = tmp_path / "new" / "folder" / "t.parquet"
    write_table(table, path, PROVENANCE)
    pd.testing.assert_frame_equal(read_table(path), table)
    record = read_provenance(path)
    assert record["parameters"] == {"gamma": 0.4}
    assert record["seed"] == 3
    assert record["versions"]["numpy"] == np.__version__
    assert record["seconds"] >= 0


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHAPES = st.tuples(st.integers(0, 4), st.integers(0, 5))


@given(array=arrays(np.float32, SHAPES, elements=FINITE))
def test_array_round_trip(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    write_arrays({"x": array, "transposed": array.T}, path, PROVENANCE)
    back = read_arrays(path)
    np.testing.assert_array_equal(back["x"], array)
    np.testing.assert_array_equal(back["transposed"], array.T)
    assert read_provenance(path)["seed"] == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_numbers_are_refused_by_name_and_leave_nothing(tmp_path, table, bad):
    table.loc[1, "mse"] = bad
    with pytest.raises(NumericalError, match="'mse'"):
        write_table(table, tmp_path / "t.parquet", PROVENANCE)
    with pytest.raises(NumericalError, match="'weights'"):
        write_arrays({"weights": np.array([bad])}, tmp_path / "a.safetensors", PROVENANCE)
    with pytest.raises(NumericalError, match=r"loss: 1 of 3"):
        check_finite("loss", [1.0, bad, 2.0])
    assert list(tmp_path.iterdir()) == []


def test_nullable_columns_may_miss_values_but_not_be_infinite(tmp_path, table, loose_schema):
    table.loc[1, "mse"] = np.nan
    write_table(table, tmp_path / "t.parquet", PROVENANCE, loose_schema(table))
    assert read_table(tmp_path / "t.parquet")["mse"].isna().tolist() == [False, True]
    table.loc[1, "mse"] = np.inf
    with pytest.raises(NumericalError, match="infinite"):
        write_table(table, tmp_path / "t.parquet", PROVENANCE, loose_schema(table))


def test_a_failed_write_keeps_the_old_file_and_no_temporary(tmp_path, table, monkeypatch):
    path = tmp_path / "t.parquet"
    write_table(table, path, PROVENANCE)
    before = path.read_bytes()

    def fail(_table, where):
        where.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(artifacts.pq, "write_table", fail)
    with pytest.raises(DataError, match=r"t\.parquet: cannot be written \(disk full\)"):
        write_table(table, path, PROVENANCE)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_path_appears_only_when_complete(tmp_path):
    path = tmp_path / "figure.pdf"
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        assert temporary.suffix == ".pdf"  # writers choose the format by it
    assert path.read_text() == "half"


@pytest.mark.parametrize("content", [b"", b"PAR1 nonsense", b"\x00" * 64])
def test_damaged_files_are_data_errors_that_name_the_file(tmp_path, content):
    for name, read in (("t.parquet", read_table), ("a.safetensors", read_arrays)):
        path = tmp_path / name
        with pytest.raises(DataError, match=name):
            read(path)
        path.write_bytes(content)
        with pytest.raises(DataError, match=name):
            read(path)


def test_a_truncated_file_is_a_data_error(tmp_path, table):
    write_table(table, tmp_path / "t.parquet", PROVENANCE)
    write_arrays({"x": np.zeros(1000)}, tmp_path / "a.safetensors", PROVENANCE)
    for name, read in (("t.parquet", read_table), ("a.safetensors", read_arrays)):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(DataError, match=name):
            read(path)


def test_foreign_files_have_no_provenance(tmp_path, table):
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="no provenance"):
        read_provenance(tmp_path / "t.parquet")


@pytest.mark.slow
def test_temporaries_of_dead_writers_go_and_those_of_living_ones_stay(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = tmp_path / "t.parquet"
    with atomic_path(path) as temporary:
        temporary.touch()
    host = temporary.name.removeprefix(".t.").removesuffix(f".{os.getpid()}.parquet")
    files = {
        f".t.{host}.{dead.pid}.parquet": False,
        f".t.{host}.{os.getppid()}.parquet": True,  # of a writer that is alive
        f".t.another-host.{dead.pid}.parquet": True,  # nobody knows
        f".u.{host}.{dead.pid}.parquet": True,  # of another file
        f".t.{host}.{dead.pid}.safetensors": True,
    }
    for name in files:
        (tmp_path / name).touch()
    with atomic_path(path) as temporary:
        temporary.touch()
    assert {name: (tmp_path / name).exists() for name in files} == files


def test_a_command_line_starts_with_no_inputs(tmp_path, table, monkeypatch):
    write_table(table, tmp_path / "before.parquet", PROVENANCE)
    read_table(tmp_path / "before.parquet")

    def main() -> None:
        write_table(table, tmp_path / "after.parquet", PROVENANCE)

    monkeypatch.setattr(sys, "argv", ["job"])
    with pytest.raises(SystemExit):
        run(main)
    assert read_provenance(tmp_path / "after.parquet")["inputs"] == {}


def test_byte_order_is_the_machines(tmp_path):
    array = np.array([1.0, 2.0], dtype=">f4")
    write_arrays({"x": array}, tmp_path / "a.safetensors", PROVENANCE)
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.safetensors")["x"], array)
