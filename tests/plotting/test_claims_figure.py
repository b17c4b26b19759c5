import pytest
from matplotlib.colors import to_rgba

from spectral_laws.claims.registry import Region, load_claims
from spectral_laws.errors import DataError
from spectral_laws.palette import VERDICT_COLORS
from spectral_laws.plotting.claims import draw as draw_claims
from spectral_laws.plotting.claims import region_text, typeset

SYMBOLS = {
    "reproduced": "o",
    "direction reproduced": "^",
    "not reproduced": "X",
    "inconclusive": "D",
    "uninformative": "s",
    "ill-posed": "*",
    "not run at this scale": "_",
}


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_every_claim_has_its_row(claims_table, assert_legible):
    figure = draw_claims(claims_table)
    shown = texts(figure)
    assert {claim.id for claim in load_claims()} <= set(shown)
    width, height = figure.get_size_inches()
    assert width == 7.0
    assert height < 11.5
    assert_legible(figure)
    heads = ["Sequential feature recovery (arXiv:2605.14567)", "B1", "Identities", "B5", "B6"]
    heads += ["Our own statements", "A12"]
    assert [text for text in shown if text in heads] == heads


def test_verdict_is_colour_and_symbol(claims_table):
    figure = draw_claims(claims_table)
    marks = [line for line in figure.axes[0].lines if line.get_marker() != "None"]
    primary = claims_table[claims_table["role"] == "primary"].set_index("claim")["verdict"]
    apart = ["B5", "B6", "A12"]
    claims = primary.drop(apart)
    for line, verdict in zip(marks, [*claims, *primary[apart]], strict=True):
        assert line.get_marker() == SYMBOLS[verdict]
        assert to_rgba(line.get_color()) == to_rgba(VERDICT_COLORS[verdict])
    assert len(set(VERDICT_COLORS.values())) == len(SYMBOLS)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [f"{verdict}: {(claims == verdict).sum()}" for verdict in SYMBOLS]


def test_n_is_what_is_resampled_with_the_coverage_of_few(claims_table):
    few = claims_table[claims_table["claim"] == "A1"].copy()
    few.loc[:, ["n_clusters", "clusters", "n_stratum"]] = [3, "teachers", None]
    assert "3 teachers\n(64\xa0to\xa075\xa0%)" in texts(draw_claims(few))
    few["n_clusters"] = 10
    assert "10 teachers" in texts(draw_claims(few))


def test_accepted_range_as_text(claims_table):
    assert region_text(Region(low=-0.15, high=0.15)) == "\u22120.15 to 0.15"
    assert region_text(Region(high=0.2)) == "\u2264 0.2"
    assert region_text(Region(low=0.8)) == "\u2265 0.8"
    assert "\u2264 \u22121" in texts(draw_claims(claims_table))


def test_names_become_letters():
    assert typeset("D / lambda_k^2 samples") == "D / \u03bb_k\u00b2 samples"
    assert typeset("zeta(2 alpha gamma)^2 >= 1") == "\u03b6(2 \u03b1 \u03b3)\u00b2 \u2265 1"
    assert typeset("up-to 1 - n^(-1), slope -2") == "up-to 1 \u2212 n^(\u22121), slope \u22122"
    assert typeset("alphabet") == "alphabet"


def test_one_paper(claims_table, assert_legible):
    figure = draw_claims(claims_table[claims_table["claim"].str.startswith("B")])
    assert not any("feature recovery" in text for text in texts(figure))
    assert_legible(figure)


def test_nothing_to_draw(claims_table):
    with pytest.raises(DataError, match="unknown verdict maybe"):
        draw_claims(claims_table.assign(verdict="maybe"))
    with pytest.raises(DataError, match="unknown claim C1"):
        draw_claims(claims_table.assign(claim="C1"))
    with pytest.raises(DataError, match="the first row of A1 must be its primary one"):
        draw_claims(claims_table[claims_table["role"] != "primary"])
