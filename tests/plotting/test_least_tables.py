"""Every figure from the least that a valid preset leaves: it is drawn, or one line says why not."""

import warnings

import pytest

from spectral_laws.errors import DataError, NumericalError
from spectral_laws.figure_registry import load_figures
from spectral_laws.plotting import draw_figure
from spectral_laws.plotting.style import house_style

pytestmark = pytest.mark.slow

STUDIES = (
    "quadratic", "quadratic_tanh", "gamma_04", "equivalent", "equivalent_tanh", "steep", "wide",
    "smoothing", "depth_linear", "depth_quadratic",
)  # fmt: skip
FEW = {"top_k": 20, "resamples": 10, "confidence": 0.95}
SLOPES = ("alpha", "gamma", "s", "decay", "median", "slope", "phi_a", "phi_delta")
SIZES = ("half_recovery", "predicted_half_recovery", "tail_exponent", "validation_loss")
VALUES = ("our_value", "our_low", "our_high", "author_value", "ci_low", "ci_high")


@pytest.fixture(scope="module")
def tables(
    make_recovery, make_baselines, make_perturbation, make_population, make_error_exponents,
    make_spectrum, make_curvature, make_optimizers, audit_table, claims_table,
):  # fmt: skip
    names = ("metrics", "directions", "thresholds")
    return {
        **dict(zip(names, make_recovery(STUDIES, 2), strict=True)),
        "baselines": make_baselines(seeds=2),
        "perturbation": make_perturbation(2),
        "population": make_population(2),
        "error_exponents": make_error_exponents(),
        "spectrum": make_spectrum(),
        "audit": audit_table,
        "claim_measurements": claims_table,
        **make_curvature(seeds=2, experiments=("classes",), models=("resnet18", "mlp")),
        **make_optimizers(seeds=2, methods=("adamw", "sgd")),
    }


def smallest(table, column, *by):
    """Rows with the smallest value of a column that is there, within each group."""
    by = [name for name in by if name in table]
    if column not in table:
        return table
    least = table.groupby(by)[column].transform("min") if by else table[column].min()
    return table[table[column] == least]


def one_seed(table):
    return smallest(table, "seed")


def one_size(table):
    return smallest(one_seed(table), "sample_size", "study", "dimension")


def one_of_all(table):
    table = smallest(one_size(table), "dimension", "study")
    for column in ("direction", "layer_index", "model", "epoch"):
        table = smallest(table, column, *(["model"] if column == "layer_index" else []))
    return table


def two_directions(table):
    if "study" not in table or "n_directions" not in table:
        return table
    table = table.assign(n_directions=2)
    return table[table["direction"] <= 2] if "direction" in table else table


def nothing_positive(table):
    """No curvature, no gap, and no sample size and direction that every seed resolves."""
    for column in ("directional_curvature", "finite_difference", "eigenvalue", "error_same"):
        if column in table and "operator_norm" not in table:
            table = table.assign(**{column: -table[column].abs()})
    found = {"cos2": 1.0} if "cos2" in table else {}
    found |= {"resolved": table["seed"] == 0} if "resolved" in table else {}
    return table.assign(**found)


def nothing_recovered(table):
    found = {name: 0.0 for name in ("cos2", "predicted_cos2", "feature_overlap") if name in table}
    found |= {name: 1.0 for name in ("mse", "predicted_mse") if name in table}
    return table.assign(**found)


def nothing_known(table):
    lost = [name for name in (*SLOPES, *SIZES, *VALUES) if name in table]
    if "degree" in table or ("n_directions" in table and "model" not in table):
        lost = [name for name in lost if name != "gamma"]  # of the teacher, not a fit
    found = {"status": "no fit"} if "status" in table else {}
    found |= {"censored": "above"} if "censored" in table else {}
    found |= {"diverged": True} if "diverged" in table else {}
    return table.assign(**dict.fromkeys(lost, float("nan")), **found)


CASES = (
    one_seed, one_size, one_of_all, two_directions, nothing_positive, nothing_recovered,
    nothing_known,
)  # fmt: skip


@pytest.mark.parametrize("name", load_figures())
def test_the_least_tables_are_drawn_or_refused_in_one_line(tables, name):
    figure = load_figures()[name]
    keys = [table.split("/")[-1] for table in figure.tables]
    whole = {key: tables[key].reset_index(drop=True) for key in keys}
    parameters = {key: FEW[key] for key in figure.params}
    drawn, refused, tried = set(), {}, [whole]
    for case in CASES:
        least = {key: case(table).reset_index(drop=True) for key, table in whole.items()}
        if any(all(least[key].equals(before[key]) for key in least) for before in tried):
            continue
        tried.append(least)
        with warnings.catch_warnings(), house_style():
            warnings.simplefilter("error")
            try:
                draw_figure(name, **least, **parameters).draw_without_rendering()
                drawn.add(case)
            except (DataError, NumericalError) as error:
                refused[case] = str(error)
    assert one_seed not in refused
    assert all("\n" not in line and len(line) < 200 for line in refused.values())
    assert drawn or name in ("claims", "curvature_audit", "optimizers_responses")


@pytest.mark.parametrize("name", load_figures())
def test_missing_columns_and_rows_are_named(tables, name):
    figure = load_figures()[name]
    whole = {table.split("/")[-1]: tables[table.split("/")[-1]] for table in figure.tables}
    parameters = {key: FEW[key] for key in figure.params}
    for key, table in whole.items():
        for change, message in (
            (table.head(0), f"{key} table: no rows, nothing to draw"),
            (table.drop(columns=table.columns[1]), f"{key} table: no column {table.columns[1]}"),
        ):
            with pytest.raises(DataError, match=message):
                draw_figure(name, **whole | {key: change}, **parameters)
