"""Tables of races that were really run, judged by the claims: columns, names and counts meet."""

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import write_table
from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.tables import NAMES, ClaimTables, read_claim_tables
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.optimizers.layer_rates import train_layer_rates
from spectral_laws.optimizers.race import Task, train_method, tune_method
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Model
from spectral_laws.settings.optimizers import Method, RaceTraining, RateVariants

pytestmark = pytest.mark.slow

SEEDS = range(3)
GRID = {"momentum": 0.9, "weight_decays": (0.0,)}
SPECTRAL = GRID | {"optimizer": "spectral_newton", "learning_rates": (0.003, 0.03), "damping": 0.1}
METHODS = {
    "adamw": Method(optimizer="adamw", learning_rates=(0.003, 0.03), **GRID),
    "sgd": Method(optimizer="sgd", learning_rates=(0.01, 1e6), **GRID),
    "spectral_newton_2": Method(alpha=2.0, **SPECTRAL),
    "spectral_newton_measured": Method(alpha="measured", **SPECTRAL),
}
LAYERS = {"mlp": ["layers.0", "layers.1", "head"], "gpt2": ["transformer.h.0.mlp.c_fc"]}
SETTINGS = {"confidence": 0.95, "resamples": 50, "seed": 1}


def images() -> Samples:
    rng = np.random.default_rng(0)
    pixels, labels = rng.normal(size=(64, 1, 4, 4)).astype(np.float32), np.arange(64) % 3
    pixels += labels[:, None, None, None].astype(np.float32)
    return Samples(pixels[:48], labels[:48], pixels[48:], labels[48:], 3)


def text() -> Samples:
    tokens = (np.random.default_rng(0).integers(0, 7, 64)[:, None] + np.arange(9)) % 7
    first, rest = tokens[:48], tokens[48:]
    return Samples(first[:, :-1], first[:, 1:], rest[:, :-1], rest[:, 1:], 7, 7)


def task(name, architecture, samples, **model):
    return Task(
        name,
        Model(training="sgd", architecture=architecture, data="toy", **model),
        architecture,
        samples,
        RaceTraining(train_size=32, validation_size=16, epochs=2, batch_size=16),
        seed=0,
    )


@pytest.fixture(scope="module")
def tables():
    exponents = pd.DataFrame(
        {"model": model, "layer": layer, "final": True, "status": "fit",
         "alpha": 1.0 + place, "s": 0.5 + place}
        for model, layers in LAYERS.items() for place, layer in enumerate(layers)
    )  # fmt: skip
    tuning, races = [], []
    tasks = [
        task("images", "mlp", images(), width=8, depth=2),
        task("text", "gpt2", text(), width=8, depth=1, heads=2),
    ]
    for each in tasks:
        for name, method in METHODS.items():
            tuned = tune_method(each, method, exponents, name=name, replicates=2).table
            tuning.append(tuned)
            run = train_method(each, method, tuned, exponents, name=name, replicates=SEEDS)
            races.append(run.table)
    race = pd.concat(races, ignore_index=True)
    rates = train_layer_rates(
        tasks[0],
        METHODS["sgd"],
        race,
        exponents,
        RateVariants(method="sgd", exponents=(0.5, 1.0, -1.0), random=True),
        replicates=SEEDS,
    )
    return {
        "tuning": pd.concat(tuning, ignore_index=True),
        "race": race,
        "layer_rates": rates.table,
    }


@pytest.fixture(scope="module")
def claims(tables):
    return evaluate_claims(ClaimTables(**tables), **SETTINGS)


def test_both_claims_are_measured_on_the_trainings(claims, tables):
    primary = claims[claims["role"] == "primary"].set_index("claim")
    found = primary[primary["value"].notna()]
    assert found["n_clusters"].to_dict() == {"B14": 3, "B15": 3}
    race = tables["race"]
    last = race[(race["race"] == "images") & (race["epoch"] == 2)]
    means = 100 * last.groupby("method")["test_accuracy"].mean()
    assert found.loc["B14", "value"] == pytest.approx(means["spectral_newton_2"] - means["adamw"])
    rates = tables["layer_rates"]
    means = 100 * rates.groupby("variant")["test_accuracy"].mean()
    gain = (means["b = 0.5"] + means["b = 1"]) / 2 - means["none"]
    assert found.loc["B15", "value"] == pytest.approx(gain)
    # The training without layer rates is that of the race.
    assert means["none"] == pytest.approx(
        100 * last.loc[last["method"] == "sgd", "test_accuracy"].mean()
    )
    assert "mlp in images" in found.loc["B15", "scope"]


def test_race_tuning_and_loss_stand_beside(claims):
    scopes = claims.loc[claims["claim"] == "B14", "scope"]
    network = "mlp, 32 training samples, 4 steps, tuned on 4 trainings each"
    assert f"images, gain, {network}" in set(scopes)
    loss = "loss of adamw minus that of spectral_newton_2, nats per token, text"
    row = claims[claims["scope"] == loss]
    assert row["n_clusters"].tolist() == [3]
    assert row["value"].notna().all()


def test_a_method_that_did_not_race_says_why(claims):
    rows = claims[(claims["claim"] == "B14") & (claims["missing"] != "")]
    assert rows["scope"].tolist() == [
        "alpha = 1",
        "Muon minus AdamW",
        "SOAP minus AdamW",
        "SGD without momentum minus AdamW",
        "alpha = 2 minus Muon",
    ]


def test_stored_tables_give_the_same_claims(claims, tables, tmp_path):
    for name, table in tables.items():
        path = tmp_path / f"{name}.parquet"
        write_table(table, path, Provenance(parameters={}), NAMES[name])
    stored = read_claim_tables(sorted(tmp_path.glob("*.parquet")))
    pd.testing.assert_frame_equal(evaluate_claims(stored, **SETTINGS), claims, check_dtype=False)
