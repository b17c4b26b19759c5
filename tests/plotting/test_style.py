import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image

from spectral_laws.palette import KIND_COLORS
from spectral_laws.plotting.style import (
    house_style,
    label_decades,
    markers,
    ordered_colors,
    save_figure,
    styled,
    widened,
)


def simple_figure():
    figure = Figure(figsize=(2, 1.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4], label="a line")
    axes.set(xlabel=r"$\lambda_i^2$", ylabel="value (units)")
    axes.legend()
    return figure


@pytest.fixture
def saved(tmp_path):
    with house_style():
        figure = simple_figure()
    save_figure(figure, tmp_path / "a" / "x.pdf", tmp_path / "b" / "x.png")
    return tmp_path


def test_pdf_embeds_truetype_fonts_and_no_dates(saved):
    content = (saved / "a" / "x.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content
    for key in (b"CreationDate", b"ModDate", b"Producer", b"Creator"):
        assert key not in content


def test_png_has_300_dpi_and_no_program_name(saved):
    with Image.open(saved / "b" / "x.png") as image:
        assert image.size == (600, 450)
        np.testing.assert_allclose(image.info["dpi"], 300, rtol=1e-3)
        assert set(image.info) == {"dpi"}  # the record comes after the pixels


def test_nothing_temporary_is_left(saved):
    assert sorted(path.name for path in saved.rglob("*.p*")) == ["x.pdf", "x.png"]


def test_failed_drawing_leaves_the_old_file(tmp_path):
    pdf, png = tmp_path / "x.pdf", tmp_path / "x.png"
    pdf.write_bytes(b"old")
    broken = simple_figure()
    broken.axes[0].set_xlabel(r"$\nosuchcommand{$")
    with pytest.raises(ValueError, match="nosuchcommand"):
        save_figure(broken, pdf, png)
    assert pdf.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [pdf]


def test_user_settings_neither_matter_nor_change():
    @styled
    def draw():
        figure = Figure()
        figure.text(0, 0, f"{mpl.rcParams['font.size']} {mpl.rcParams['lines.linewidth']}")
        return figure

    with mpl.rc_context({"font.size": 33, "lines.linewidth": 9}):
        assert draw().texts[0].get_text() == "7.0 1.0"
        assert mpl.rcParams["font.size"] == 33


def luminance(color):
    channels = np.array(mpl.colors.to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@given(st.integers(2, 12), st.sampled_from(["viridis", "plasma"]))
def test_ordered_colours_get_lighter_and_stay_off_white(count, palette):
    # Lightness alone orders them, so they survive every colour blindness and grey print.
    values = [luminance(color) for color in ordered_colors(range(count), palette=palette).values()]
    assert np.all(np.diff(values) > 0)
    assert values[-1] < 0.7


def test_keys_in_order_without_repeats():
    assert list(ordered_colors(["b", "a", "b"])) == ["b", "a"]
    assert list(markers("abab").items()) == [("a", "o"), ("b", "s")]
    assert len(set(KIND_COLORS.values())) == 3


@pytest.mark.parametrize("limits", [(1e-3, 1e2), (2e-3, 5e-2), (3e-3, 4e-2), (1.5, 4.0)])
def test_logarithmic_axes_have_labels_that_do_not_crowd(limits):
    with house_style():
        figure = Figure(figsize=(1.7, 1.6))
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log", xlim=limits, ylim=limits)
        label_decades(axes)
        figure.draw_without_rendering()
        shown = [
            tick
            for tick in [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
            if tick.label1.get_text() and limits[0] <= tick.get_loc() <= limits[1]
        ]
    assert 2 <= len(shown) <= 6


def test_limits_hold_points_and_follow_short_intervals_only():
    low, high = widened([0, 1], [-0.2, 1.1])
    assert low < -0.2
    assert high > 1.1
    low, high = widened([0, 1], [-50, 70])
    assert (low, high) == pytest.approx((-0.63, 1.63))
    low, high = widened([2, 2], [2, 2])
    assert low < 2 < high
