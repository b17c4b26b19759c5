import math

import pytest
from pydantic import ValidationError

from spectral_laws.claims.evaluation import MEASUREMENTS
from spectral_laws.claims.registry import Claim, Region, load_claims

GOOD = {
    "id": "A1",
    "paper": "recovery",
    "statement": "s",
    "paper_value": "p",
    "quantity": "q",
    "evidence": "e",
    "accept": {"low": 0.5, "high": 1},
    "direction": {"low": 0},
    "rule": "r",
    "figures": ["recovery_mse"],
    "tables": ["recovery/metrics"],
}


def test_every_claim_once_and_in_order():
    expected = [f"A{i}" for i in range(1, 13)] + [f"B{i}" for i in range(1, 23)]
    assert [claim.id for claim in load_claims()] == expected


def test_every_field_is_filled_and_papers_match_ids():
    for claim in load_claims():
        assert claim.paper == ("recovery" if claim.id.startswith("A") else "curvature")
        for text in (claim.statement, claim.paper_value, claim.quantity, claim.evidence):
            assert text.strip()
        assert claim.rule.strip()


def test_regions_exclude_something():
    for claim in load_claims():
        for region in (claim.accept, claim.direction):
            assert math.isfinite(region.low) or math.isfinite(region.high)


def test_identities_alone_have_no_interval():
    assert [claim.id for claim in load_claims() if claim.no_interval] == ["B5", "B6"]


def test_every_claim_has_a_measurement():
    assert set(MEASUREMENTS) == {claim.id for claim in load_claims()}


@pytest.mark.parametrize(
    "change",
    [
        {"id": "C1"},
        {"paper": "other"},
        {"statement": " "},
        {"rule": ""},
        {"accept": {"low": -1, "high": 1}},
        {"accept": {"low": 1, "high": 0}},
        {"surplus": 1},
        {"figures": []},
        {"tables": []},
    ],
)
def test_wrong_entries_are_refused(change):
    assert Claim.model_validate(GOOD).id == "A1"
    with pytest.raises(ValidationError):
        Claim.model_validate({**GOOD, **change})


def test_region_ends_belong_to_it_and_open_ends_are_infinite():
    region = Region(low=1)
    assert region.contains(1, 1e300)
    assert not region.contains(0.999, 2)
    assert str(Region(high=0.5)) == "[-inf, 0.5]"
