import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectral_laws.claims.registry import Claim
from spectral_laws.claims.verdicts import Measurement, judge, judge_claim
from spectral_laws.errors import NumericalError

NUMBER = st.floats(-3, 3)
PLAIN = {
    "id": "A1",
    "paper": "recovery",
    "statement": "s",
    "paper_value": "1",
    "quantity": "q",
    "evidence": "e",
    "rule": "r",
    "figures": ["recovery_mse"],
    "tables": ["recovery/metrics"],
}


def claim(accept=(0.8, 1.2), direction=(0, math.inf), **other):
    regions = {
        name: {"low": low, "high": high}
        for name, (low, high) in (("accept", accept), ("direction", direction))
    }
    return Claim.model_validate({**PLAIN, **regions, **other})


def measured(value, low, high, **other):
    return Measurement(value, low, high, 10, "things", 5, "boxes", **other)


REPRODUCED, DIRECTION, OTHER = measured(1, 0.9, 1.1), measured(2, 1, 3), measured(-1, -2, -0.5)


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (1.0, 0.9, 1.1, "reproduced"),
        (1.0, 0.1, 3.0, "reproduced"),
        (1.2, 1.0, 1.4, "reproduced"),
        (1.3, 1.1, 1.5, "direction reproduced"),
        (0.2, 0.0, 0.4, "direction reproduced"),
        (1.0, -0.1, 2.0, "inconclusive"),
        (0.1, -0.1, 0.8, "inconclusive"),
        (-1.0, -1.2, -0.8, "not reproduced"),
        (0.1, -0.1, 0.79, "not reproduced"),
        (-0.1, 0.0, 0.3, "not reproduced"),
        (-0.1, 0.0, 0.9, "inconclusive"),
    ],
)
def test_one_measurement(value, low, high, expected):
    assert judge(claim(), measured(value, low, high)) == expected
    assert judge_claim(claim(), measured(value, low, high), []) == expected


@pytest.mark.parametrize(
    ("primary", "controls", "expected"),
    [
        (REPRODUCED, [REPRODUCED], "uninformative"),
        (REPRODUCED, [OTHER, REPRODUCED], "uninformative"),
        (REPRODUCED, [DIRECTION], "reproduced"),
        (REPRODUCED, [OTHER, None], "reproduced"),
        (DIRECTION, [REPRODUCED], "uninformative"),
        (DIRECTION, [DIRECTION], "uninformative"),
        (DIRECTION, [measured(1, -1, 2)], "direction reproduced"),
        (OTHER, [REPRODUCED], "not reproduced"),
        (measured(1, -1, 2), [REPRODUCED], "inconclusive"),
        (None, [REPRODUCED], "not run at this scale"),
    ],
)
def test_a_control_that_does_as_well_as_the_claim(primary, controls, expected):
    assert judge_claim(claim(), primary, controls) == expected


@pytest.mark.parametrize("primary", [REPRODUCED, OTHER, None])
def test_what_cannot_exist_is_ill_posed_whatever_is_measured(primary):
    assert judge_claim(claim(ill_posed="no such rank"), primary, [REPRODUCED]) == "ill-posed"


@given(st.lists(NUMBER, min_size=4, max_size=4), NUMBER, NUMBER, NUMBER)
def test_truth_table(ends, value, one, other):
    d_low, a_low, a_high, d_high = sorted(ends)
    low, high = min(one, other), max(one, other)
    verdict = judge(
        claim(accept=(a_low, a_high), direction=(d_low, d_high)), measured(value, low, high)
    )
    low, high = min(low, value), max(high, value)
    if d_low <= low and high <= d_high:
        accepted = a_low <= value <= a_high
        assert verdict == ("reproduced" if accepted else "direction reproduced")
    else:
        apart = high < a_low or a_high < low
        assert verdict == ("not reproduced" if apart else "inconclusive")


@given(st.floats(-1, 1), NUMBER, st.floats(0, 2), st.floats(0, 2))
def test_a_wider_interval_never_decides_more(place, centre, narrow, extra):
    value = centre + place * narrow
    tight = judge(claim(), measured(value, centre - narrow, centre + narrow))
    wide = judge(claim(), measured(value, centre - narrow - extra, centre + narrow + extra))
    passing = ("reproduced", "direction reproduced")
    assert wide == tight or (tight in passing and wide not in passing) or wide == "inconclusive"


def test_no_interval_only_where_the_claim_says_why():
    point = measured(1.0, None, None)
    with pytest.raises(ValueError, match="A1: a measurement without an interval"):
        judge(claim(), point)
    identity = claim(no_interval="an identity")
    assert judge(identity, point) == "reproduced"
    assert judge(identity, measured(-1.0, None, None)) == "not reproduced"


def test_measurements_are_finite_and_ordered():
    with pytest.raises(NumericalError):
        measured(math.nan, 0, 1)
    with pytest.raises(NumericalError):
        measured(0.5, 0, math.inf)
    with pytest.raises(ValueError, match="low <= high"):
        measured(0.5, 1, 0)
    with pytest.raises(ValueError, match="both ends"):
        measured(0.5, None, 1)
