import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spectral_laws.claims.registry import Claim
from spectral_laws.claims.verdicts import VERDICTS, Measurement, judge
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


def measured(value, low, high):
    return Measurement(value, low, high, 10, "ten things")


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (1.0, 0.9, 1.1, "reproduced"),
        (1.0, 0.1, 3.0, "reproduced"),
        (1.2, 1.0, 1.4, "reproduced"),
        (1.3, 1.1, 1.5, "direction reproduced"),
        (0.2, 0.0, 0.4, "direction reproduced"),
        (1.0, -0.1, 2.0, "not reproduced"),
        (-1.0, -1.2, -0.8, "not reproduced"),
        (0.1, -0.1, 0.3, "not reproduced"),
        (-0.1, 0.0, 0.3, "not reproduced"),
    ],
)
def test_table(value, low, high, expected):
    assert judge(claim(), measured(value, low, high)) == expected


def test_nothing_measured():
    assert judge(claim(), None) == "not run at this scale"


@given(st.lists(NUMBER, min_size=4, max_size=4), NUMBER, NUMBER, NUMBER)
def test_truth_table(ends, value, one, other):
    d_low, a_low, a_high, d_high = sorted(ends)
    low, high = min(one, other), max(one, other)
    verdict = judge(
        claim(accept=(a_low, a_high), direction=(d_low, d_high)), measured(value, low, high)
    )
    direction_holds = d_low <= low and high <= d_high and d_low <= value <= d_high
    accepted = a_low <= value <= a_high
    expected = {
        (True, True): "reproduced",
        (True, False): "direction reproduced",
        (False, True): "not reproduced",
        (False, False): "not reproduced",
    }[direction_holds, accepted]
    assert verdict == expected
    assert verdict in VERDICTS


@given(NUMBER, NUMBER, st.floats(0, 2), st.floats(0, 2))
def test_a_wider_interval_never_improves_the_verdict(value, centre, narrow, extra):
    assume(abs(value - centre) <= narrow)
    tight = judge(claim(), measured(value, centre - narrow, centre + narrow))
    wide = judge(claim(), measured(value, centre - narrow - extra, centre + narrow + extra))
    assert VERDICTS.index(wide) >= VERDICTS.index(tight)


def test_no_interval_only_where_the_claim_says_why():
    point = Measurement(1.0, None, None, 1, "one thing")
    with pytest.raises(ValueError, match="A1: a measurement without an interval"):
        judge(claim(), point)
    identity = claim(no_interval="an identity")
    assert judge(identity, point) == "reproduced"
    assert judge(identity, Measurement(-1.0, None, None, 1, "")) == "not reproduced"


def test_measurements_are_finite_and_ordered():
    with pytest.raises(NumericalError):
        measured(math.nan, 0, 1)
    with pytest.raises(NumericalError):
        measured(0.5, 0, math.inf)
    with pytest.raises(ValueError, match="low <= high"):
        measured(0.5, 1, 0)
    with pytest.raises(ValueError, match="both ends"):
        measured(0.5, None, 1)
