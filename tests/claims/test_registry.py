import math
from dataclasses import fields

import pytest
from pydantic import ValidationError

from spectral_laws.claims.evaluation import EVIDENCE
from spectral_laws.claims.registry import Change, Claim, Region, load_claims, load_registry
from spectral_laws.claims.tables import ClaimTables

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


def test_every_claim_once_in_order_with_its_evidence():
    expected = [f"A{i}" for i in range(1, 13)] + [f"B{i}" for i in range(1, 23)]
    assert [claim.id for claim in load_claims()] == expected
    assert set(EVIDENCE) == set(expected)
    for claim in load_claims():
        assert claim.paper == ("recovery" if claim.id.startswith("A") else "curvature")


def test_regions_exclude_something():
    for claim in load_claims():
        for region in (claim.accept, claim.direction):
            assert math.isfinite(region.low) or math.isfinite(region.high)


def test_what_is_no_plain_claim_of_a_paper():
    kinds = {claim.id: claim.kind for claim in load_claims() if claim.kind != "claim"}
    assert kinds == {"A12": "ours", "B5": "identity", "B6": "identity"}
    assert [claim.id for claim in load_claims() if claim.no_interval] == ["B5", "B6"]
    assert [claim.id for claim in load_claims() if claim.ill_posed] == ["B9"]
    controlled = {name: set(evidence.control) for name, evidence in EVIDENCE.items()}
    assert {name: controls for name, controls in controlled.items() if controls} == {
        "B4": {"exact curvatures of the same directions"},
        "B11": {"h permuted", "least squares alone"},
    }


def test_some_claim_rests_on_every_table():
    """The rule gives the tables that claims name; one left out would be 'not run' in silence."""
    named = {name.split("/")[1] for claim in load_claims() for name in claim.tables}
    assert named == {field.name for field in fields(ClaimTables)}


def test_the_history_is_dated_in_order_and_speaks_of_claims():
    history = load_registry().history
    assert [change.date for change in history] == sorted(change.date for change in history)
    assert {name for change in history for name in change.claims} <= set(EVIDENCE)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "C1"},
        {"paper": "other"},
        {"kind": "other"},
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


@pytest.mark.parametrize("change", [{"date": "yesterday"}, {"reason": ""}, {"change": " "}])
def test_wrong_history_is_refused(change):
    good = {"date": "2026-12-01", "change": "c", "reason": "r"}
    assert Change.model_validate(good).claims == ()
    with pytest.raises(ValidationError):
        Change.model_validate({**good, **change})


def test_region_ends_belong_to_it_and_open_ends_are_infinite():
    region = Region(low=1)
    assert region.contains(1, 1e300)
    assert not region.contains(0.999, 2)
    assert str(Region(high=0.5)) == "[-inf, 0.5]"
    assert region.meets(-1, 1)
    assert not region.meets(-1, 0.999)
