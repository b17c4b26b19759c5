import ast
import re

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.errors import DataError
from spectral_laws.provenance import Provenance
from spectral_laws.tables.schemas import check_table, load_schema, table_names

NAME = "curvature/factor_models"


@pytest.fixture
def table(complete):
    rows = {"model": ["a", "b"], "rank_model": ["power_law", None], "same": [True, None]}
    return complete(pd.DataFrame(rows), NAME)


@pytest.mark.parametrize("name", table_names())
def test_every_schema_says_what_the_table_is_and_which_rule_makes_it(name, root):
    schema = load_schema(name)
    assert len(set(schema.names)) == len(schema.names)
    rules = "".join(path.read_text() for path in (root / "workflow" / "rules").glob("*.smk"))
    assert re.search(rf"^rule {schema.rule}:$", rules, re.MULTILINE)


def test_a_missing_schema_is_named():
    for name in ("recovery/nothing", "nothing", "../recovery/metrics"):
        with pytest.raises(DataError, match=f"no schema of a table '{name}'; there are recovery/"):
            load_schema(name)


def test_a_table_that_fits_is_written_and_read_as_it_was(tmp_path, table):
    path = tmp_path / "t.parquet"
    write_table(table, path, Provenance({}), NAME)
    pd.testing.assert_frame_equal(check_table(read_table(path), NAME), table)
    write_table(table.iloc[:0], path, Provenance({}), NAME)
    nothing = table.assign(rank_model=None, same=None)
    write_table(nothing, path, Provenance({}), NAME)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns=["size", "role"]), "no column role, size"),
        (lambda t: t.assign(more=1), "column more is not in its schema"),
        (lambda t: t[t.columns[::-1]], "its columns are in another order"),
        (lambda t: t.assign(size=0.5), "column size is float64, not int64"),
        (lambda t: t.assign(seed="x"), "column seed is str, not int64"),
        (lambda t: t.assign(entropy_rank=1), "column entropy_rank is int64, not float64"),
        (lambda t: t.assign(entropy_rank=np.float32(1)), "column entropy_rank is float32"),
        (lambda t: t.assign(entropy_rank=[np.nan, 1.0]), "column entropy_rank has missing values"),
        (lambda t: t.assign(role=["head", None]), "column role has missing values"),
        (lambda t: t.assign(role=True), "column role is bool, not str"),
        (lambda t: t.assign(same=["yes", None]), "column same is str, not bool"),
        (lambda t: t.assign(rank_model=[True, None]), "column rank_model is object, not str"),
    ],
)
def test_another_table_is_refused_by_table_and_column(tmp_path, table, change, message):
    path = tmp_path / "t.parquet"
    with pytest.raises(DataError, match=rf"t\.parquet: {NAME} table: {message}"):
        write_table(change(table), path, Provenance({}), NAME)
    assert not path.exists()


def test_a_reader_asks_for_columns_alone(table):
    check_table(table.assign(more=1, size=0.5), NAME)
    with pytest.raises(DataError, match=f"^{NAME} table: no column layer, size$"):
        check_table(table.drop(columns=["layer", "size"]), NAME)


def test_numbers_that_are_all_missing_are_numbers():
    table = load_schema("curvature/windows").frame([{"model": "a", "unknown": 1}])
    assert list(table.columns) == load_schema("curvature/windows").names
    assert table["alpha"].dtype == np.float64


def test_every_script_names_the_schema_of_what_it_writes(root):
    named = set()
    for script in (root / "workflow" / "scripts").glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "write_table":
                assert len(node.args) == 4, f"{script.name}: write_table without a schema"
                if isinstance(node.args[3], ast.Constant):
                    named.add(node.args[3].value)
    rest = {"claims/claims", "optimizers/training"}  # written by the library
    assert named == {*table_names()} - rest
