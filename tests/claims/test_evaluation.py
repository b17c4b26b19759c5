import importlib.util
import subprocess
import sys
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_provenance, read_table
from spectral_laws.claims.evaluation import EVIDENCE, evaluate_claims
from spectral_laws.claims.recovery.thresholds import measure_threshold_exponent
from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import NAMES, ClaimTables, read_claim_tables
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.rng import generator
from spectral_laws.settings.base import Intervals

pytestmark = [pytest.mark.xdist_group("evaluation"), pytest.mark.slow]

SETTINGS = {"confidence": 0.95, "resamples": 100, "seed": 11}
SIZES = np.geomspace(100, 3e6, 30)


@pytest.fixture(scope="module")
def tables(world):
    """A world in which every measurable claim can be measured and holds, with true features too."""
    make = world["thresholds"]
    wide = make(dimensions=(25, 36, 200), width=9)
    tanh = make(study="tanh", readout="tanh", dimensions=(36,), width=9)
    true = make(study="true", features="hermite", on_weakness=0.6, width=6)
    metrics = [
        world["metrics"](gamma=1.0, law="mse", exponent=-0.65),
        world["metrics"](gamma=0.4, law="explained", exponent=0.63),
        world["metrics"](
            gamma=0.8, law="mse", exponent=-0.3, features="hermite", study="true", width=20
        ),
    ]
    overlaps = world["directions"](wide, sizes=SIZES, decay=1.165)
    true_overlaps = world["directions"](true, sizes=SIZES, decay=1.0, chance=0.3)
    widths = world["widths"](-0.4, dimensions=(25, 100, 400), start=100, middle=1.0)
    return ClaimTables(
        metrics=pd.concat(metrics, ignore_index=True),
        directions=pd.concat([overlaps, true_overlaps, widths], ignore_index=True),
        thresholds=pd.concat([wide, tanh, true], ignore_index=True),
        baselines=world["baselines"](2.0),
        perturbation=world["perturbation"](),
        error_exponents=world["error_exponents"](),
        **world["curvature"](),
    )


@pytest.fixture(scope="module")
def evaluated(tables):
    return evaluate_claims(tables, **SETTINGS)


class Watched(ClaimTables):
    """Notes which tables a measurement looks at."""

    seen: ClassVar = set()

    def __getattribute__(self, name):
        if name in NAMES:
            Watched.seen.add(name)
        return super().__getattribute__(name)


def test_the_registry_names_the_tables_that_claims_are_measured_from(tables):
    watched = Watched(**vars(tables))
    for claim in load_claims():
        Watched.seen.clear()
        for _, _, measure in EVIDENCE[claim.id].rows():
            with suppress(NoFitError):
                measure(watched, Resampling(0.95, 20, generator(1, "claims", claim.id)))
        assert {name.split("/")[1] for name in claim.tables} == Watched.seen, claim.id


def primary(table):
    return table[table["role"] == "primary"].set_index("claim")


def rows_of(table, claim):
    """What stands beside a claim."""
    return table[(table["claim"] == claim) & (table["role"] != "primary")].set_index("scope")


def test_every_claim_has_one_primary_row_with_value_interval_and_counts(evaluated):
    assert list(evaluated["claim"].unique()) == [claim.id for claim in load_claims()]
    assert not evaluated["claim"][evaluated["role"] == "primary"].duplicated().any()
    table = primary(evaluated)
    assert (evaluated.drop_duplicates("claim")["role"] == "primary").all()
    identities = [claim.id for claim in load_claims() if claim.no_interval]
    counts = ["value", "n_units", "n_clusters"]
    assert table[counts].notna().all(axis=None)
    assert (table["n_clusters"] <= table["n_units"]).all()
    assert (table["n_stratum"].dropna() <= table["n_clusters"][table["n_stratum"].notna()]).all()
    assert table.drop(index=identities)[["low", "high"]].notna().all(axis=None)
    assert table.loc[identities, ["low", "high"]].isna().all(axis=None)
    found = table["verdict"].drop(["B9", "B11"])
    assert (found == "reproduced").all(), found
    assert table.loc["B9", "verdict"] == "ill-posed"
    assert table.loc["B11", "verdict"] == "uninformative"
    missing = evaluated["value"].isna()
    assert ((evaluated["missing"] != "") == missing).all()
    assert evaluated["scope"].str.len().max() < 200


@pytest.mark.parametrize(
    ("absent", "lost"),
    [
        ("metrics", {"A5", "A6"}),
        ("directions", {"A2", "A4", "A7", "A8", "A12"}),
        ("thresholds", {"A1", "A2", "A3", "A4", "A10"}),
        ("baselines", {"A7"}),
        ("perturbation", {"A9", "A11"}),
        ("error_exponents", set()),
        ("spectra", {"B9", "B21"}),
        (
            "exponents",
            {*("B1", "B2", "B3", "B11", "B12", "B13", "B16", "B17", "B20", "B21", "B22")},
        ),
        ("ladder", {"B10", "B16"}),
        ("decomposition", {"B5", "B6"}),
        ("independence", set()),
        ("weights", {"B22"}),
        ("factor_models", set()),
        ("finite_differences", {"B4"}),
        ("race", {"B14"}),
        ("tuning", {"B14"}),
        ("layer_rates", {"B15"}),
        (
            "experiments",
            {f"B{i}" for i in range(1, 23)} - {"B4", "B5", "B6", "B14", "B15", "B17", "B20"},
        ),
    ],
)
def test_an_absent_table_is_named_and_hurts_only_its_claims(tables, absent, lost):
    given = {name: getattr(tables, name) for name in ClaimTables.__dataclass_fields__}
    rest = ClaimTables(**given | {absent: None})
    reasons = {}
    for claim in load_claims():
        if NAMES[absent] not in claim.tables:  # and so it does not look at it
            continue
        try:
            EVIDENCE[claim.id].primary(rest, Resampling(0.95, 20, generator(11, claim.id)))
        except NoFitError as error:
            reasons[claim.id] = str(error)
    assert reasons == dict.fromkeys(lost, f"the {absent} table is absent")


def test_an_empty_table_is_an_absent_one(tables):
    empty = ClaimTables(exponents=tables.exponents.iloc[:0])
    with pytest.raises(NoFitError, match="the exponents table is absent"):
        empty.require("exponents")
    pd.testing.assert_frame_equal(tables.require("exponents"), tables.exponents)


def test_rows_beside_a_claim_have_streams_and_verdicts_of_their_own(tables, evaluated):
    own = measure_threshold_exponent(
        tables,
        Resampling(0.95, 100, generator(11, "claims", "A1", "true features")),
        features="hermite",
    )
    assert own.value == pytest.approx(0.6, abs=0.05)
    row = rows_of(evaluated, "A1").loc[f"true features, {own.scope}"]
    assert (row["value"], row["low"], row["high"]) == (own.value, own.low, own.high)
    assert (row["role"], row["verdict"]) == ("sensitivity", "direction reproduced")
    for name, beside in own.beside.items():
        row = rows_of(evaluated, "A1").loc[f"true features: {name}, {beside.scope}".rstrip(", ")]
        assert (row["value"], row["verdict"]) == (beside.value, "")
    layers = rows_of(evaluated, "A5")
    judged = layers.index[layers["verdict"] != ""]
    assert [name.split(",")[0] for name in judged] == [
        "same-sample second layer",
        "outliers-only second layer",
        "true features",
    ]


def test_controls_of_the_transfer_law(evaluated):
    rows = rows_of(evaluated, "B11")
    controls = rows[rows["role"] == "control"]
    assert [name.split(",")[0] for name in controls.index] == ["h permuted", "least squares alone"]
    assert list(controls["verdict"]) == ["not reproduced", "reproduced"]


def test_without_the_equivalent_a_claim_is_not_run_but_true_features_are_shown(tables, evaluated):
    given = {name: getattr(tables, name) for name in ClaimTables.__dataclass_fields__}
    for name in ("metrics", "directions", "thresholds"):
        given[name] = given[name][given[name]["features"] == "hermite"]
    table = evaluate_claims(ClaimTables(**given), **SETTINGS)
    for claim in ("A1", "A2", "A3", "A4", "A5", "A12"):
        first = primary(table).loc[claim]
        assert first["verdict"] == "not run at this scale"
        assert np.isnan(first["value"])
        assert first["missing"]
        rows = rows_of(table, claim)
        true = rows[rows.index.str.startswith("true features") & rows["value"].notna()]
        assert len(true) >= 1
        pd.testing.assert_frame_equal(true, rows_of(evaluated, claim).loc[true.index])
    assert primary(table).loc["A8", "verdict"] == "reproduced"


def test_nothing_measured():
    table = primary(evaluate_claims(ClaimTables(), **SETTINGS))
    assert set(table["verdict"].drop("B9")) == {"not run at this scale"}
    assert table.loc["B9", "verdict"] == "ill-posed"
    assert (table["missing"] != "").all()
    assert len(table) == len(EVIDENCE)


def test_same_seed_same_table_and_claims_do_not_share_a_stream(tables, evaluated):
    some = ClaimTables(exponents=tables.exponents, experiments=tables.experiments)
    alone = evaluate_claims(some, **SETTINGS)
    for claim in ("B1", "B2", "B12", "B18"):
        one, two = (table[table["claim"] == claim] for table in (evaluated, alone))
        pd.testing.assert_frame_equal(one.reset_index(drop=True), two.reset_index(drop=True))
    other = evaluate_claims(some, **{**SETTINGS, "seed": 12})
    judged = alone["value"].notna() & alone["low"].notna()
    assert (alone["value"][judged] == other["value"][judged]).all()
    assert (alone["low"][judged] != other["low"][judged]).mean() > 0.5


def test_script_writes_what_the_library_computes(tables, evaluated, tmp_path, root, complete):
    paths = []
    for name in ClaimTables.__dataclass_fields__:
        path = tmp_path / f"{name}.parquet"
        complete(getattr(tables, name), NAMES[name]).to_parquet(path)
        paths.append(path)
    output = tmp_path / "out" / "claim_measurements.parquet"
    name = root / "workflow" / "scripts" / "evaluate_claims.py"
    spec = importlib.util.spec_from_file_location("script", name)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(paths, Intervals(confidence=0.95, resamples=100), 11, output)
    pd.testing.assert_frame_equal(read_table(output), evaluated)
    assert set(map(str, paths)) <= set(read_provenance(output)["inputs"])


def test_files_that_are_no_table_are_named(tables, tmp_path, complete):
    with pytest.raises(DataError, match=r"nowhere/baselines\.parquet"):
        read_claim_tables([tmp_path / "nowhere" / "baselines.parquet"])
    with pytest.raises(DataError, match=r"other\.parquet: no claim rests on a table 'other'"):
        read_claim_tables([tmp_path / "other.parquet"])
    path = tmp_path / "ladder.parquet"
    ladder = complete(tables.ladder, "curvature/ladder")
    ladder.drop(columns="slope").to_parquet(path)
    with pytest.raises(DataError, match="ladder table: no column slope"):
        read_claim_tables([path])
    ladder.to_parquet(path)
    pd.testing.assert_frame_equal(read_claim_tables([path]).ladder, ladder)
    with pytest.raises(DataError, match="there is another ladder table"):
        read_claim_tables([path, path])


def test_claims_and_fits_do_not_load_torch():
    code = (
        "import sys; import spectral_laws.claims.evaluation, spectral_laws.claims.render, "
        "spectral_laws.curvature.fits.exponents, spectral_laws.fitting.bootstrap; "
        "sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
