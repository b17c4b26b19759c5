import subprocess
import sys
from contextlib import suppress
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_provenance, read_table
from spectral_laws.claims.evaluation import MEASUREMENTS, evaluate_claims
from spectral_laws.claims.recovery.thresholds import measure_threshold_exponent
from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.report import claims_csv, claims_markdown
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.tables import NAMES, ClaimTables, read_claim_tables
from spectral_laws.claims.verdicts import VERDICTS
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.rng import generator

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
        evidence = MEASUREMENTS[claim.id]
        for measure in (evidence.judged, *evidence.beside.values()):
            with suppress(NoFitError):
                measure(watched, Resampling(0.95, 20, generator(1, "claims", claim.id)))
        assert {name.split("/")[1] for name in claim.tables} == Watched.seen, claim.id


def test_every_claim_has_one_row_and_measured_ones_a_value(evaluated):
    table = evaluated.set_index("id")
    assert list(table.index) == [claim.id for claim in load_claims()]
    assert set(MEASUREMENTS) == set(table.index)
    identities = [claim.id for claim in load_claims() if claim.no_interval]
    assert table[["our_value", "n"]].notna().all(axis=None)
    assert table.drop(index=identities)[["ci_low", "ci_high"]].notna().all(axis=None)
    assert table.loc[identities, ["ci_low", "ci_high"]].isna().all(axis=None)
    assert (table["verdict"] == "reproduced").all(), table["verdict"]
    assert table.notna()[["statement", "quantity", "paper_value", "reason", "rule"]].all(axis=None)


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
    for claim, evidence in MEASUREMENTS.items():
        try:
            evidence.judged(rest, Resampling(0.95, 20, generator(11, claim)))
        except NoFitError as error:
            reasons[claim] = str(error)
    assert reasons == dict.fromkeys(lost, f"the {absent} table is absent")


def test_an_empty_table_is_an_absent_one(tables):
    empty = ClaimTables(exponents=tables.exponents.iloc[:0])
    with pytest.raises(NoFitError, match="the exponents table is absent"):
        empty.require("exponents")
    pd.testing.assert_frame_equal(tables.require("exponents"), tables.exponents)


def test_beside_a_claim_stands_the_same_quantity_with_its_own_verdict(tables, evaluated):
    table = evaluated.set_index("id")
    own = measure_threshold_exponent(
        tables,
        Resampling(0.95, 100, generator(11, "claims", "A1", "true features")),
        features="hermite",
    )
    assert own.value == pytest.approx(0.6, abs=0.05)
    assert table.loc["A1", "beside"] == (
        "true features, d = 25 to 49, slope on log(1/lambda^2): "
        f"{own.value:.3g} [{own.ci_low:.3g}, {own.ci_high:.3g}], direction reproduced"
    )
    assert table.loc["A2", "beside"].startswith("true features, d = 25 to 49: 0 [0, 0]")
    assert table.loc["A2", "beside"].endswith("not reproduced")
    assert table.loc["A2", "verdict"] == "reproduced"
    layers = table.loc["A5", "beside"].split("; ")
    assert [text.split(",")[0] for text in layers] == [
        "same-sample second layer",
        "outliers-only second layer",
        "true features",
    ]
    assert all(text.endswith("reproduced") for text in layers)
    assert table.loc["A6", "beside"].endswith("h = d1/2 >= 9)")
    assert "; true features: not run (no study" in table.loc["A6", "beside"]
    assert table.loc["A9", "beside"].startswith("true features of degree 2: not run (")
    assert table.loc["A10", "beside"].count("not run") == 3
    assert (table.loc[["A7", "B5", "B12"], "beside"] == "").all()


def test_beside_the_transfer_law_stand_its_controls(evaluated):
    table = evaluated.set_index("id")
    names, verdicts = zip(
        *((text.split(": ")[0], text.split("], ")[1])
          for text in table.loc["B11", "beside"].split("; ")),
        strict=True,
    )  # fmt: skip
    assert names == (
        "disjoint halves",
        "s repeated on the other half",
        "h permuted",
        "least squares alone",
    )
    assert (verdicts[0], *verdicts[2:]) == ("direction reproduced", "not reproduced", "reproduced")


def test_without_the_equivalent_a_claim_is_not_run_but_true_features_are_shown(tables, evaluated):
    given = {name: getattr(tables, name) for name in ClaimTables.__dataclass_fields__}
    for name in ("metrics", "directions", "thresholds"):
        given[name] = given[name][given[name]["features"] == "hermite"]
    full = evaluated.set_index("id")
    table = evaluate_claims(ClaimTables(**given), **SETTINGS).set_index("id")
    for claim in ("A1", "A2", "A3", "A4", "A5", "A12"):
        assert table.loc[claim, "verdict"] == "not run at this scale"
        assert np.isnan(table.loc[claim, "our_value"])
        true = table.loc[claim, "beside"].split("; ")[-1]
        assert true.startswith("true features, d = ")
        assert true == full.loc[claim, "beside"].split("; ")[-1]
    assert table.loc["A8", "verdict"] == "reproduced"


def test_nothing_measured():
    table = evaluate_claims(ClaimTables(), **SETTINGS)
    assert set(table["verdict"]) == {"not run at this scale"}
    assert len(table) == 34


def test_same_seed_same_table_and_claims_do_not_share_a_stream(tables, evaluated):
    one, two = evaluated, evaluate_claims(tables, **SETTINGS)
    assert claims_csv(one) == claims_csv(two)
    assert claims_markdown(one) == claims_markdown(two)
    alone = evaluate_claims(
        ClaimTables(exponents=tables.exponents, experiments=tables.experiments), **SETTINGS
    )
    for claim in ("B1", "B2", "B12", "B18"):
        pd.testing.assert_frame_equal(one[one["id"] == claim], alone[alone["id"] == claim])
    other = evaluate_claims(tables, **{**SETTINGS, "seed": 12})
    assert (one["our_value"].dropna() == other["our_value"].dropna()).all()
    assert claims_csv(one) != claims_csv(other)


def test_markdown_has_every_claim_and_counts_on_top(evaluated):
    table = evaluated
    text = claims_markdown(table)
    lines = text.splitlines()
    for claim in load_claims():
        rows = [line for line in lines if line.startswith(f"| {claim.id} |")]
        assert len(rows) == 2, claim.id  # the verdict and the rule
        assert sum(line.startswith(f"- {claim.id}: ") for line in lines) == 1
        assert claim.statement in rows[0].replace("\\|", "|")
    first = next(i for i, line in enumerate(lines) if line.startswith("## "))
    counts = {}
    for verdict in VERDICTS:
        row = next(line for line in lines[:first] if line.startswith(f"| {verdict} |"))
        counts[verdict] = [int(cell) for cell in row.strip("| ").split(" | ")[1:]]
    assert all(a + b == total for a, b, total in counts.values())
    assert {v: c[2] for v, c in counts.items()} == {
        v: int((table["verdict"] == v).sum()) for v in VERDICTS
    }
    assert counts["reproduced"] == [12, 22, 34]
    titles = [line for line in lines if line.startswith("| claim |")]
    assert titles[0].endswith("| verdict | beside |")
    beside = table.set_index("id")["beside"]
    a1 = next(line for line in lines if line.startswith("| A1 |"))
    assert a1.endswith(f"| {beside['A1']} |")
    table_lines = [line for line in lines if line.startswith("| ")]
    cells = {line.replace("\\|", "").count("|") for line in table_lines}
    assert cells == {5, 6, 7}  # counts, rules and claims: no stray separator
    recovery, curvature = text.split("## Loss curvature")
    assert "Gaussian-equivalent" in recovery
    assert "not an eigenvalue of the Hessian" in curvature
    assert "Gaussian-equivalent" not in curvature


def test_csv_has_four_significant_digits_and_reads_back(evaluated, tmp_path):
    table = evaluated
    path = tmp_path / "claims.csv"
    path.write_text(claims_csv(table), encoding="utf-8")
    back = pd.read_csv(path)
    assert list(back["id"]) == list(table["id"])
    for column in ("our_value", "ci_low", "ci_high"):
        ours, read = table[column].dropna(), back[column].dropna()
        assert np.allclose(ours, read, rtol=5e-4)
        digits = read.map(
            lambda value: len(f"{value:.9e}".split("e")[0].strip("-0").replace(".", ""))
        )
        assert digits.max() <= 4
    assert pd.api.types.is_integer_dtype(back["n"])


@pytest.mark.slow
def test_script_writes_what_the_library_computes(tables, evaluated, tmp_path, root, complete):
    paths = []
    for name in ClaimTables.__dataclass_fields__:
        path = tmp_path / f"{name}.parquet"
        complete(getattr(tables, name), NAMES[name]).to_parquet(path)
        paths.append(str(path))
    parquet, csv, markdown = (tmp_path / "out" / f"claims.{s}" for s in ("parquet", "csv", "md"))
    script = root / "workflow" / "scripts" / "evaluate_claims.py"
    command = [sys.executable, str(script), *paths, "--seed", "11", "--csv", str(csv)]
    command += ["--markdown", str(markdown), "--parquet", str(parquet)]
    command += ["--intervals", '{"confidence": 0.95, "resamples": 100}']
    subprocess.run(command, check=True, capture_output=True)
    pd.testing.assert_frame_equal(read_table(parquet), evaluated)
    read = read_provenance(parquet)["inputs"]
    assert set(read) == set(paths)
    assert csv.read_text(encoding="utf-8") == claims_csv(evaluated)
    assert markdown.read_text(encoding="utf-8") == claims_markdown(evaluated)


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


@pytest.mark.slow
def test_claims_and_fits_do_not_load_torch():
    code = (
        "import sys; import spectral_laws.claims.evaluation, spectral_laws.claims.report, "
        "spectral_laws.curvature.fits.exponents, spectral_laws.fitting.bootstrap; "
        "sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
