"""The tables that the fits really make, judged by the claims: columns, names and counts meet."""

import numpy as np
import pandas as pd
import pytest

from spectral_laws.artifacts import read_table, write_table
from spectral_laws.claims.evaluation import evaluate_claims
from spectral_laws.claims.tables import NAMES, ClaimTables, read_claim_tables
from spectral_laws.curvature.experiments import tabulate_experiments
from spectral_laws.curvature.fits.decomposition import fit_decomposition
from spectral_laws.curvature.fits.exponents import fit_exponents
from spectral_laws.curvature.fits.factor_models import compare_factor_models
from spectral_laws.curvature.fits.independence import fit_independence
from spectral_laws.curvature.fits.ladder_slopes import fit_ladder
from spectral_laws.curvature.fits.weight_tails import fit_weight_tails
from spectral_laws.provenance import Provenance
from spectral_laws.settings.curvature import Experiment, Model

pytestmark = [pytest.mark.xdist_group("curvature claims"), pytest.mark.slow]

TOP_K = 12
FITS = {"top_k": TOP_K, "confidence": 0.95, "resamples": 20, "seed": 3}
BLOCK = ["attention_qkv", "attention_output", "mlp_up", "mlp_down", "head"]
STACKS = {"resnet18": ["conv", "conv", "conv", "head"], "mlp": ["linear", "linear", "head"]}
ALPHAS = {"conv": 2.0, "linear": 1.2, "head": 2.5}
VIT = {"architecture": "vit_tiny", "data": "images", "depth": 1, "heads": 1, "patch": 4}
RESNET = {"architecture": "resnet18", "data": "images", "width": 16}
MODELS = {
    "resnet18": RESNET | {"checkpoints": (0,)},
    "no_skip": RESNET | {"skip_scale": 0.0},
    "mlp": {"architecture": "mlp", "data": "images", "width": 64, "depth": 2},
    "wide": {"architecture": "mlp", "data": "images", "width": 512, "depth": 2},
    "vit": VIT | {"width": 16},
    "plain_vit": VIT | {"width": 16, "normalisation": "none"},
    "gpt2": {"architecture": "gpt2", "data": "text", "width": 16, "depth": 1, "heads": 1},
    "classifier": {"architecture": "gpt2", "data": "chains", "width": 16, "depth": 1, "heads": 1},
    "many": {"architecture": "mlp", "data": "many", "width": 64, "depth": 2},
}
EXPERIMENTS = {
    "architectures": ("architecture", ("resnet18", "mlp", "gpt2", "vit")),
    "layer_norm": ("normalisation", ("vit", "plain_vit")),
    "residual": ("skip_scale", ("resnet18", "no_skip")),
    "classes": ("n_classes", ("mlp", "many")),
    "task": ("task", ("gpt2", "classifier")),
    "width": ("width", ("mlp", "wide")),
}


@pytest.fixture(scope="module")
def models():
    return {name: Model(training="sgd", **settings) for name, settings in MODELS.items()}


@pytest.fixture(scope="module")
def spectra(models):
    parts = []
    for name, model in models.items():
        stack = STACKS.get(model.architecture, BLOCK)
        halves = name in EXPERIMENTS["architectures"][1]
        for seed in range(3):
            for epoch, part in [
                *((0, "whole") for _ in model.checkpoints),
                (7, "whole"),
                *((7, half) for half in ("first", "second") if halves),
            ]:
                rng = np.random.default_rng([len(name), seed, epoch, len(part)])
                for place, role in enumerate(stack):
                    who = {"model": name, "architecture": model.architecture, "seed": seed}
                    who |= {"epoch": epoch, "final": epoch == 7, "part": part}
                    parts.append(_layer(rng, place, role, ladder=part == "whole" and epoch == 7)
                                 .assign(**who))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _layer(rng, place, role, *, ladder):
    """A power law with scatter; directions past TOP_K are measured too, but no claim fits them."""
    n = 9 if role == "head" else TOP_K + 4
    k = np.arange(1.0, n + 1)
    sigma = np.sort(k**-0.8 * np.exp(0.05 * rng.normal(size=n)))[::-1]
    h = sigma ** ALPHAS.get(role, 1.0) * np.exp(0.1 * rng.normal(size=n))
    factors = {
        "rho_delta": 0.5 * sigma**-0.2 * np.exp(0.1 * rng.normal(size=n)),
        "rho_a": 0.4 * np.exp(0.1 * rng.normal(size=n)),
        "lambda_delta": sigma * np.exp(0.1 * rng.normal(size=n)),
        "lambda_a": sigma * np.exp(0.1 * rng.normal(size=n)),
    }
    kronecker = np.prod([*factors.values()], axis=0)
    rungs = dict.fromkeys(("gauss_newton", "fisher", "positions", "positions_true"), h)
    rungs |= {"kronecker": kronecker, "kronecker_true": kronecker} | factors
    return pd.DataFrame(
        {
            "layer_index": place,
            "layer": f"layer{place}",
            "kind": "conv" if role == "conv" else "head" if role == "head" else "linear",
            "role": role,
            "n_rows": 20,
            "n_columns": 20,
            "index": k.astype(int),
            "singular_value": sigma,
            "directional_curvature": h,
            "n_below_rank": 0,
        }
        | {name: values if ladder else np.nan for name, values in rungs.items()}
    )


@pytest.fixture(scope="module")
def tables(models, spectra):
    exponents = fit_exponents(spectra, **FITS)
    decomposition = fit_decomposition(spectra, **FITS)
    final = spectra[spectra["final"] & (spectra["part"] == "whole")]
    layers = final.drop_duplicates(["model", "seed", "layer_index"])
    rng = np.random.default_rng(0)
    networks = {
        key: {f"{layer}.weight": rng.normal(size=(20, 20)) for layer in rows["layer"]}
        for key, rows in layers.groupby(["model", "seed"])
    }
    ranks = {"size": 20, "participation_rank": 3.0, "entropy_rank": 4.0}
    factors = final.assign(**ranks, factor="delta", eigenvalue=final["lambda_delta"])
    return {
        "spectra": spectra,
        "exponents": exponents,
        "ladder": fit_ladder(spectra, **FITS),
        "decomposition": decomposition,
        "independence": fit_independence(spectra, top_k=TOP_K, permutations=20, seed=3),
        "weights": fit_weight_tails(networks, spectra),
        "factor_models": compare_factor_models(factors, spectra, top_k=TOP_K),
        "experiments": tabulate_experiments(
            {name: Experiment(over=over, models=of) for name, (over, of) in EXPERIMENTS.items()},
            models,
            n_classes={"images": 10, "chains": 4, "many": 100},
            tasks={"images": "classification", "many": "classification",
                   "chains": "classification", "text": "language_modelling"},
            exponents=exponents,
            decomposition=decomposition,
        ),
        "finite_differences": final.assign(
            finite_difference=final["directional_curvature"] * rng.normal(size=len(final)),
            step=1e-3,
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def measured(tables):
    return evaluate_claims(ClaimTables(**tables), confidence=0.95, resamples=50, seed=1)


@pytest.fixture(scope="module")
def claims(measured):
    return measured[measured["role"] == "primary"].set_index("claim").filter(like="B", axis=0)


def test_every_claim_finds_its_layers(claims, measured):
    missing = claims["value"].isna()
    assert set(claims.index[missing]) == {"B9", "B14", "B15"}
    counts = {"B1": 9, "B2": 12, "B3": 12, "B7": 15, "B8": 12, "B10": 9, "B11": 51, "B12": 51}
    counts |= {"B16": 51, "B17": 9, "B18": 12, "B19": 3, "B20": 12, "B22": 51}
    assert claims.loc[[*counts], "n_units"].to_dict() == counts
    clusters = {"B1": 3, "B3": 12, "B7": 3, "B11": 12, "B17": 3, "B19": 3, "B21": 12}
    assert claims.loc[[*clusters], "n_clusters"].to_dict() == clusters
    # three heads of nine directions and TOP_K of every other layer, of three seeds
    assert claims.loc["B21", "n_units"] == 3 * (4 * 9 + 13 * TOP_K)
    assert claims.loc["B5", "value"] < 1e-10
    assert claims.loc["B6", "value"] < 1e-10
    assert claims.loc["B9", "verdict"] == "ill-posed"
    assert claims.loc["B9", "missing"] == "no head has a singular direction beyond k = c"
    others = measured[measured["claim"].eq("B9") & measured["role"].eq("sensitivity")]
    assert others["value"].notna().sum() == 4  # last direction of a gradient, hidden layers; steps
    controls = measured[measured["role"] == "control"].groupby("claim")["value"].count()
    assert controls.to_dict() == {"B4": 1, "B11": 2}


def test_planted_exponents_come_out(claims):
    assert claims.loc["B1", "value"] == pytest.approx(2.0, abs=0.1)
    assert claims.loc["B2", "value"] == pytest.approx(1.0, abs=0.1)
    assert claims.loc["B3", "value"] == pytest.approx(2.5, abs=0.1)
    assert claims.loc["B10", "value"] == pytest.approx(2.0 - 1.8, abs=0.1)
    assert claims.loc["B17", "value"] == pytest.approx(0.0, abs=0.1)


def test_stored_tables_give_the_same_claims(measured, tables, tmp_path, complete):
    for name, table in tables.items():
        path = tmp_path / f"{name}.parquet"
        write_table(complete(table, NAMES[name]), path, Provenance(parameters={}), NAMES[name])
    stored = read_claim_tables(sorted(tmp_path.glob("*.parquet")))
    again = evaluate_claims(stored, confidence=0.95, resamples=50, seed=1)
    pd.testing.assert_frame_equal(again, measured)
    assert len(read_table(tmp_path / "ladder.parquet")) == len(tables["ladder"])
