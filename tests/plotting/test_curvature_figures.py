import numpy as np
import pytest

from spectral_laws.errors import DataError
from spectral_laws.plotting import (
    draw_curvature_alpha_by_layer,
    draw_curvature_power_law,
    draw_curvature_triangle,
)
from spectral_laws.plotting.curvature_power_law import pick_layers
from spectral_laws.plotting.curvature_triangle import product_interval

NO_FIT = "layer3.0.downsample.0"


@pytest.fixture(scope="module")
def tables(make_curvature):
    return make_curvature()


@pytest.fixture(scope="module")
def with_gaps(make_curvature):
    return make_curvature(no_fit=(NO_FIT, "fc"))


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


class TestPowerLaw:
    def test_four_layers_with_their_slopes(self, tables, assert_legible):
        spectra, exponents = tables
        figure = draw_curvature_power_law(spectra, exponents)
        names = [title.split("\n")[0] for title in titles(figure)]
        assert names == ["conv1", "layer3.0.conv1", "layer4.1.conv2", "fc"]
        fits = exponents.query("model == 'resnet18' and seed == 0").set_index("layer")
        for axes, name in zip(figure.axes, names, strict=True):
            assert axes.get_xscale() == axes.get_yscale() == "log"
            fit = fits.loc[name]
            text = f"{fit['alpha']:.2f} [{fit['alpha_low']:.2f}, {fit['alpha_high']:.2f}]"
            assert text in axes.get_title(loc="left")
        assert "loss / weight" in figure.get_supxlabel()
        assert "weight$^2$" in figure.get_supylabel()
        assert "256 samples" in figure.legends[0].get_title().get_text()
        assert_legible(figure)

    def test_points_and_line_are_the_tables(self, tables):
        spectra, exponents = tables
        axes = draw_curvature_power_law(spectra, exponents).axes[0]
        points, line, guide = axes.lines
        rows = spectra.query("model == 'resnet18' and seed == 0 and layer == 'conv1'")
        np.testing.assert_array_equal(points.get_xdata(), rows["singular_value"])
        np.testing.assert_array_equal(points.get_ydata(), rows["directional_curvature"])
        # The oracle: numpy's own least squares line.
        slope, level = np.polyfit(*np.log([points.get_xdata(), points.get_ydata()]), 1)
        x = line.get_xdata()
        np.testing.assert_allclose(line.get_ydata(), np.exp(level) * x**slope, rtol=1e-9)
        np.testing.assert_allclose(np.diff(np.log(guide.get_ydata())), 2 * np.diff(np.log(x)))

    def test_dropped_entries_are_counted(self, tables, assert_legible):
        figure = draw_curvature_power_law(*tables, model="mlp")
        head = figure.axes[-1]
        (text,) = (text.get_text() for text in head.texts)
        assert "7 of 9 used" in text
        assert "2 dropped" in text
        assert len(head.lines[0].get_xdata()) == 7
        assert_legible(figure)

    def test_rank_cut_is_counted(self, tables):
        spectra, exponents = tables
        figure = draw_curvature_power_law(spectra.assign(n_below_rank=11), exponents)
        assert all("11 below rank" in axes.texts[0].get_text() for axes in figure.axes)

    def test_layer_without_a_fit(self, with_gaps, assert_legible):
        figure = draw_curvature_power_law(*with_gaps)
        assert titles(figure)[-1] == "fc\nno fit (it needs 5 entries)"
        assert len(figure.axes[-1].lines) == 1
        assert_legible(figure)

    def test_no_positive_curvature_at_all(self, with_gaps):
        spectra, exponents = with_gaps
        spectra = spectra.assign(
            directional_curvature=spectra["directional_curvature"].where(
                spectra["layer"] != "fc", -1.0
            )
        )
        figure = draw_curvature_power_law(spectra, exponents)
        assert "0 of 4 used" in figure.axes[-1].texts[0].get_text()

    @pytest.mark.parametrize("slope", [2.0, 0.0, -1.0])
    def test_text_keeps_off_the_points(self, tables, assert_legible, slope):
        spectra, exponents = tables
        # One entry far below the others, where the text would stand.
        wild = np.where(spectra["index"] == 2, 1e-3, 1.0)
        figure = draw_curvature_power_law(
            spectra.assign(directional_curvature=spectra["singular_value"] ** slope * wild),
            exponents.assign(alpha=slope),
        )
        assert_legible(figure)  # this also draws it
        for axes in figure.axes:
            box = axes.texts[0].get_window_extent()
            points = axes.transData.transform(axes.lines[0].get_xydata())
            assert not any(box.contains(*point) for point in points)

    def test_layers_are_picked_by_the_stated_rule(self, tables):
        spectra = tables[0]
        mlp = spectra.query("model == 'mlp' and seed == 0")
        assert pick_layers(mlp) == ["layers.0", "layers.1", "layers.2", "head"]
        assert pick_layers(mlp[mlp["layer"] == "head"]) == ["head"]
        assert pick_layers(mlp[mlp["layer"] == "layers.1"]) == ["layers.1"]

    def test_nothing_to_draw(self, tables):
        spectra, exponents = tables
        with pytest.raises(DataError, match="no model 'vit', there are resnet18, mlp"):
            draw_curvature_power_law(spectra, exponents, model="vit")
        with pytest.raises(DataError, match="spectra table: no rows"):
            draw_curvature_power_law(spectra.head(0), exponents)
        with pytest.raises(DataError, match="exponents table: no column alpha_r2"):
            draw_curvature_power_law(spectra, exponents.drop(columns="alpha_r2"))


class TestTriangle:
    def test_points_line_and_summary(self, tables, assert_legible):
        exponents = tables[1]
        figure = draw_curvature_triangle(exponents)
        (axes,) = figure.axes
        points = [line for line in axes.lines if line.get_marker() in "os"]
        drawn = np.concatenate([line.get_xydata() for line in points])
        product = exponents["alpha"] * exponents["gamma"]
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(product))
        np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(exponents["s"]))
        identity = next(line for line in axes.lines if line.get_marker() == "None")
        np.testing.assert_array_equal(identity.get_xdata(), identity.get_ydata())
        assert axes.get_xlim() == axes.get_ylim()
        (text,) = (text.get_text() for text in axes.texts)
        assert "25 layers, 3 seeds: 75 fits" in text
        assert f"{100 * exponents['transfer_error'].median():.2g} %" in text
        assert "no fit" not in text
        assert_legible(figure)

    def test_kind_is_colour_and_model_is_marker(self, tables):
        axes = draw_curvature_triangle(tables[1]).axes[0]
        points = [line for line in axes.lines if line.get_marker() in "os"]
        assert {line.get_marker() for line in points} == {"o", "s"}
        assert len({line.get_color() for line in points}) == 3
        assert len(points) == 4

    def test_rows_without_a_fit_are_counted(self, with_gaps, assert_legible):
        figure = draw_curvature_triangle(with_gaps[1])
        assert "no fit: 6" in figure.axes[0].texts[0].get_text()
        assert_legible(figure)

    def test_product_interval_to_first_order(self, tables):
        rows = tables[1].head(1).assign(
            alpha=2.0, alpha_low=1.9, alpha_high=2.3, gamma=1.0, gamma_low=0.8, gamma_high=1.1
        )  # fmt: skip
        low, high = product_interval(rows)
        np.testing.assert_allclose(low, 2 - np.hypot(0.1, 0.4))
        np.testing.assert_allclose(high, 2 + np.hypot(0.3, 0.2))
        # A negative alpha turns gamma's interval round.
        low, high = product_interval(rows.assign(alpha=-2.0, alpha_low=-2.1, alpha_high=-1.7))
        np.testing.assert_allclose(low, -2 - np.hypot(0.1, 0.2))
        np.testing.assert_allclose(high, -2 + np.hypot(0.3, 0.4))

    def test_nothing_to_draw(self, tables):
        with pytest.raises(DataError, match="no row has a fit"):
            draw_curvature_triangle(tables[1].assign(status="no fit"))
        with pytest.raises(DataError, match="exponents table: no rows"):
            draw_curvature_triangle(tables[1].head(0))


class TestAlphaByLayer:
    def test_layers_in_depth_order_per_model(self, tables, assert_legible):
        exponents = tables[1].sample(frac=1, random_state=3).sort_values("model")[::-1]
        figure = draw_curvature_alpha_by_layer(exponents)
        assert titles(figure) == ["resnet18: 21 layers, 3 seeds", "mlp: 4 layers, 3 seeds"]
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert names[0] == "conv1"
        assert names[-1] == "fc"
        assert figure.axes[0].yaxis_inverted()
        assert r"\alpha" in figure.axes[-1].get_xlabel()
        assert_legible(figure)

    def test_points_are_the_tables(self, tables):
        exponents = tables[1]
        axes = draw_curvature_alpha_by_layer(exponents).axes[1]
        drawn = np.concatenate([bar.lines[0].get_xydata() for bar in axes.containers])
        rows = exponents[exponents["model"] == "mlp"]
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(rows["alpha"]))
        order = np.round(drawn[:, 1]).astype(int)
        for index, alpha in zip(order, drawn[:, 0], strict=True):
            assert alpha in rows.loc[rows["layer_index"] == index, "alpha"].to_numpy()
        references = [line.get_xdata()[0] for line in axes.lines if line.is_dashed()]
        assert references == [1, 2]
        assert {bar.lines[0].get_marker() for bar in axes.containers} == {"o", "s", "^"}

    def test_intervals_are_the_tables(self, tables):
        exponents = tables[1].query("model == 'mlp' and seed == 1")
        axes = draw_curvature_alpha_by_layer(exponents).axes[0]
        ends = np.concatenate([bar.lines[2][0].get_segments() for bar in axes.containers])
        np.testing.assert_allclose(np.sort(ends[:, 0, 0]), np.sort(exponents["alpha_low"]))
        np.testing.assert_allclose(np.sort(ends[:, 1, 0]), np.sort(exponents["alpha_high"]))

    def test_no_fit_is_a_cross(self, with_gaps, assert_legible):
        figure = draw_curvature_alpha_by_layer(with_gaps[1])
        crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
        assert sum(len(line.get_xdata()) for line in crosses) == 6
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert "no fit" in legend
        assert_legible(figure)

    def test_long_names_one_seed(self, tables, assert_legible):
        exponents = tables[1].query("seed == 0")
        exponents = exponents.assign(
            layer="transformer.encoder.block." + exponents["layer_index"].astype(str)
            + ".attention.output.projection.dense"
        )  # fmt: skip
        figure = draw_curvature_alpha_by_layer(exponents)
        assert "1 seed" in titles(figure)[0]
        assert "\u2026" in figure.axes[0].get_yticklabels()[0].get_text()
        assert_legible(figure)

    def test_interval_that_excludes_its_estimate(self, tables):
        # A percentile bootstrap may do that; the bar then starts at the point.
        exponents = tables[1].assign(alpha_low=tables[1]["alpha"] + 0.05)
        assert draw_curvature_alpha_by_layer(exponents).axes

    def test_nothing_to_draw(self, tables):
        with pytest.raises(DataError, match="no row has a fit"):
            draw_curvature_alpha_by_layer(tables[1].assign(status="no fit"))
        with pytest.raises(DataError, match="exponents table: no column alpha"):
            draw_curvature_alpha_by_layer(tables[1].drop(columns="alpha"))
