import numpy as np
import pytest
from matplotlib.colors import to_rgba

from spectral_laws.errors import DataError
from spectral_laws.palette import VERDICT_COLORS
from spectral_laws.plotting.claims import draw as draw_claims
from spectral_laws.plotting.claims import region_text, typeset, value_text


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_every_claim_has_its_row(claims_table, assert_legible):
    figure = draw_claims(claims_table)
    shown = texts(figure)
    assert set(claims_table["id"]) <= set(shown)
    assert len(claims_table) == 34
    width, height = figure.get_size_inches()
    assert width == 7.0
    assert height < 11
    assert_legible(figure)


def test_verdict_is_colour_and_symbol(claims_table):
    figure = draw_claims(claims_table)
    marks = [line for line in figure.axes[0].lines if line.get_marker() != "None"]
    symbols = {
        "reproduced": "o",
        "direction reproduced": "^",
        "not reproduced": "X",
        "not run at this scale": "_",
    }
    for line, verdict in zip(marks, claims_table["verdict"], strict=True):
        assert line.get_marker() == symbols[verdict]
        assert to_rgba(line.get_color()) == to_rgba(VERDICT_COLORS[verdict])
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    for verdict in symbols:
        assert f"{verdict}: {(claims_table['verdict'] == verdict).sum()}" in legend


def test_value_and_interval_as_text(claims_table):
    row = claims_table.iloc[0].copy()
    row["our_value"], row["ci_low"], row["ci_high"] = 1.2345, 1.1, 1.3999
    assert value_text(row) == "1.23 [1.1, 1.4]"
    row["our_value"], row["ci_low"], row["ci_high"] = -4e-6, -0.005, 0.009
    assert value_text(row) == "0 [\u22120.005, 0.009]"
    row["our_value"], row["ci_low"] = -1.2345, np.nan
    assert value_text(row) == "\u22121.23"
    row["our_value"] = np.nan
    assert value_text(row) == ""


def test_accepted_range_as_text(claims_table):
    assert region_text("[-0.15, 0.15]") == "\u22120.15 to 0.15"
    assert region_text("[-inf, 0.2]") == "\u2264 0.2"
    assert region_text("[0.8, inf]") == "\u2265 0.8"
    assert "\u2264 \u22120.1" in texts(draw_claims(claims_table))


def test_names_become_letters():
    assert typeset("D / lambda_k^2 samples") == "D / \u03bb_k\u00b2 samples"
    assert typeset("zeta(2 alpha gamma)^2 >= 1") == "\u03b6(2 \u03b1 \u03b3)\u00b2 \u2265 1"
    assert typeset("up-to 1 - n^(-1), slope -2") == "up-to 1 \u2212 n^(\u22121), slope \u22122"
    assert typeset("alphabet") == "alphabet"


def test_one_paper_and_special_characters(claims_table, assert_legible):
    part = claims_table[claims_table["paper"] == "curvature"].copy()
    part["statement"] = "costs $5 and 10 % more than h_k ~ sigma^2"
    figure = draw_claims(part)
    assert not any("feature recovery" in text for text in texts(figure))
    assert_legible(figure)


def test_nothing_to_draw(claims_table):
    with pytest.raises(DataError, match="claims table: no rows"):
        draw_claims(claims_table.head(0))
    with pytest.raises(DataError, match="unknown verdict maybe"):
        draw_claims(claims_table.assign(verdict="maybe"))
    with pytest.raises(DataError, match="unknown paper other"):
        draw_claims(claims_table.assign(paper="other"))
    with pytest.raises(DataError, match="no column our_value"):
        draw_claims(claims_table.drop(columns="our_value"))
