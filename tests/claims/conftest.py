"""Synthetic tables with planted answers, for every claim that tables can judge."""

import numpy as np
import pytest
from synthetic import curvature, optimizers, recovery

from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.resampling import Resampling
from spectral_laws.claims.verdicts import judge

CLAIMS = {claim.id: claim for claim in load_claims()}
MAKERS = {
    name.removeprefix("make_"): maker
    for room in (recovery, curvature, optimizers)
    for name, maker in vars(room).items()
    if name.startswith("make_")
}


def curvature_and_race(**settings):
    """Every table that claims of the curvature paper rest on; settings by table."""
    race = optimizers.make_race()
    return curvature.make_curvature(**settings) | {
        "race": race,
        "tuning": optimizers.make_tuning(race),
        "layer_rates": optimizers.make_layer_rates(),
    }


@pytest.fixture
def resampling():
    return Resampling(confidence=0.95, resamples=200, generator=np.random.default_rng(0))


@pytest.fixture
def verdict():
    """Verdict on a claim by its id."""
    return lambda claim_id, measurement: judge(CLAIMS[claim_id], measurement)


@pytest.fixture
def claims():
    return CLAIMS


@pytest.fixture(scope="session")
def world():
    """The makers by table, and what their tables are made of."""
    return MAKERS | {
        "curvature": curvature_and_race,
        "window": recovery.window_of,
        "main": curvature.MAIN,
    }
