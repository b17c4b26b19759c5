import numpy as np
import pandas as pd
import pytest

from spectral_laws.errors import DataError, NumericalError
from spectral_laws.plotting import (
    draw_recovery_directions,
    draw_recovery_mse,
    draw_recovery_spectrum,
)
from spectral_laws.plotting.recovery_directions import half_recovery


@pytest.fixture(scope="module")
def tables(make_recovery):
    return make_recovery()


def bars(axes):
    """(x, centre, low, high) of every error bar, in the order drawn."""
    result = []
    for container in axes.containers:
        line, _, (segments,) = container.lines
        ends = np.array(segments.get_segments())
        result.append((*line.get_data(orig=False), ends[:, 0, 1], ends[:, 1, 1]))
    return result


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


class TestMse:
    def test_one_logarithmic_panel_per_study(self, tables, assert_legible):
        figure = draw_recovery_mse(tables[0], tables[3])
        assert [title.split(":")[0] for title in titles(figure)] == [
            "quadratic", "quadratic_tanh", "quadratic_steep", "linear",
        ]  # fmt: skip
        assert all("5 seeds" in title for title in titles(figure))
        assert {axes.get_xscale() for axes in figure.axes} == {"log"}
        assert {axes.get_yscale() for axes in figure.axes} == {"log"}
        assert "n" in figure.get_supxlabel()
        assert "Var" in figure.get_supylabel()
        assert figure.get_size_inches()[0] == 3.4
        assert_legible(figure)

    def test_points_are_the_tables(self, tables):
        metrics, _, _, kernel = tables
        axes = draw_recovery_mse(metrics, kernel).axes[0]
        drawn = bars(axes)
        # For each of three dimensions: spectral points, then the kernel's.
        assert len(drawn) == 6
        rows = metrics.query(
            "study == 'quadratic' and second_layer == 'independent' and dimension == 36"
        )
        logs = rows.assign(log=np.log(rows["mse"])).groupby("sample_size")["log"].mean()
        np.testing.assert_allclose(drawn[2][0], logs.index / 666)
        np.testing.assert_allclose(drawn[2][1], np.exp(logs))
        assert np.all(drawn[2][2] < drawn[2][1])
        assert np.all(drawn[2][1] < drawn[2][3])
        ridge = kernel.query("study == 'quadratic' and dimension == 54")
        np.testing.assert_allclose(drawn[5][0], np.sort(ridge["sample_size"].unique()) / 1485)

    def test_wider_intervals_at_higher_confidence(self, tables):
        narrow = bars(draw_recovery_mse(tables[0], confidence=0.6).axes[0])[0]
        wide = bars(draw_recovery_mse(tables[0], confidence=0.99).axes[0])[0]
        assert np.all(wide[3] > narrow[3])
        np.testing.assert_array_equal(wide[1], narrow[1])

    def test_theory_and_light_layers(self, tables):
        metrics = tables[0]
        axes = draw_recovery_mse(metrics).axes[1]
        lines = {line.get_marker(): line for line in axes.lines}
        rows = metrics[metrics["study"] == "quadratic_tanh"]
        same = rows[rows["second_layer"] == "same_sample"]
        means = np.exp(np.log(same["mse"]).groupby(same["sample_size"]).mean())
        np.testing.assert_allclose(lines["+"].get_ydata(), means)
        tail = rows.groupby("sample_size")["tail_mse"].mean()
        dashed = next(line for line in axes.lines if line.is_dashed())
        np.testing.assert_allclose(dashed.get_ydata(), tail[tail > 0])
        assert "x" in lines

    def test_same_dimension_has_one_colour(self, tables):
        figure = draw_recovery_mse(tables[0])
        first = figure.axes[0].containers[1].lines[0].get_color()
        assert figure.axes[1].containers[0].lines[0].get_color() == first
        assert len({bar.lines[0].get_color() for bar in figure.axes[3].containers}) == 4

    def test_legend_names_only_what_is_there(self, tables):
        full = legend_texts(draw_recovery_mse(tables[0], tables[3]).legends[0])
        assert "kernel ridge regression" in full
        lean = tables[0].query("second_layer == 'independent'")
        texts = legend_texts(draw_recovery_mse(lean, tables[3].head(0)).legends[0])
        assert len(texts) == 2

    def test_one_seed_has_no_interval(self, make_recovery, assert_legible):
        metrics, *_ = make_recovery(("linear",), 1)
        figure = draw_recovery_mse(metrics)
        assert "1 seed" in titles(figure)[0]
        for _, centre, low, high in bars(figure.axes[0]):
            np.testing.assert_allclose(low, centre)
            np.testing.assert_allclose(high, centre)
        assert_legible(figure)

    def test_many_studies_with_long_names(self, tables, assert_legible):
        metrics = tables[0].query("study == 'quadratic_tanh'")
        names = [f"a_study_with_quite_a_long_name_number_{i}" for i in range(6)]
        copies = [metrics.assign(study=name) for name in names]
        figure = draw_recovery_mse(pd.concat(copies))
        assert len(figure.axes) == 6
        assert figure.get_size_inches()[0] == 7.0
        assert_legible(figure)

    def test_nothing_to_draw(self, tables):
        with pytest.raises(DataError, match="metrics table: no rows"):
            draw_recovery_mse(tables[0].head(0))
        with pytest.raises(DataError, match="independent"):
            draw_recovery_mse(tables[0].query("second_layer == 'outliers'"))
        with pytest.raises(DataError, match="no column tail_mse"):
            draw_recovery_mse(tables[0].drop(columns="tail_mse"))

    def test_nan_stops(self, tables):
        broken = tables[0].copy()
        broken.loc[0:3, "mse"] = np.nan
        with pytest.raises(NumericalError, match="mse"):
            draw_recovery_mse(broken)


class TestDirections:
    def test_every_direction_of_the_largest_dimension(self, tables, assert_legible):
        _, directions, thresholds, _ = tables
        figure = draw_recovery_directions(directions, thresholds, study="quadratic")
        (axes,) = figure.axes
        assert axes.get_xscale() == "log"
        assert "d$ = 54" in titles(figure)[0]
        assert "5 seeds" in titles(figure)[0]
        drawn = bars(axes)
        assert len(drawn) == 7
        rows = directions.query("study == 'quadratic' and dimension == 54 and direction == 3")
        means = rows.groupby("sample_size")["cos2"].mean()
        # Directions stand side by side at each sample size, the fourth of seven in the middle.
        step = np.log(means.index[1] / means.index[0])
        shift = np.log(drawn[2][0] / means.index)
        np.testing.assert_allclose(shift, -0.3 * step / 7, rtol=0.05)
        assert np.all(np.diff([bar[0][0] for bar in drawn]) > 0)
        np.testing.assert_allclose(drawn[2][1], means)
        assert all(np.all((low >= 0) & (high <= 1)) for _, _, low, high in drawn)
        assert_legible(figure)

    def test_thresholds_and_half_recovery_marks(self, tables):
        _, directions, thresholds, _ = tables
        axes = draw_recovery_directions(directions, thresholds, study="quadratic").axes[0]
        rows = thresholds.query("study == 'quadratic' and dimension == 54")
        dashed = [line.get_xdata()[0] for line in axes.lines if line.is_dashed()]
        np.testing.assert_allclose(np.sort(dashed), np.sort(rows["threshold"].unique()))
        # A curve's own marker may be a diamond too: a mark is a line of one point.
        diamonds = [
            line for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata()) == 1
        ]
        medians = rows.groupby("direction")["half_recovery"].median()
        np.testing.assert_allclose([line.get_xdata()[0] for line in diamonds], medians)

    def test_all_studies_of_the_highest_degree(self, tables, assert_legible):
        figure = draw_recovery_directions(tables[1], tables[2])
        assert len(figure.axes) == 3
        assert_legible(figure)

    def test_censored_curves_are_counted(self, make_recovery, assert_legible):
        _, directions, thresholds, _ = make_recovery(("quadratic_tanh",), 3)
        above = thresholds["direction"] >= 5
        thresholds.loc[above, "half_recovery"] = None
        thresholds.loc[above, "censored"] = "above"
        below = thresholds["direction"] == 1
        thresholds.loc[below, "half_recovery"] = None
        thresholds.loc[below, "censored"] = "below"
        figure = draw_recovery_directions(directions, thresholds)
        assert "9 curves" in titles(figure)[0]
        marks = [
            line
            for line in figure.axes[0].lines
            if line.get_marker() == "D" and len(line.get_xdata()) == 1
        ]
        assert len(marks) == 3
        assert_legible(figure)

    def test_half_recovery_orders_censored_seeds(self, tables):
        rows = tables[2].head(3).assign(half_recovery=[None, 50.0, None])
        rows["censored"] = ["above", "no", "below"]
        np.testing.assert_array_equal(half_recovery(rows), [np.inf, 50.0, 0.0])
        all_missing = rows.assign(half_recovery=None, censored="above")
        np.testing.assert_array_equal(half_recovery(all_missing), [np.inf] * 3)

    def test_at_most_eight_directions(self, make_recovery, assert_legible):
        _, directions, thresholds, _ = make_recovery(("linear",), 2)
        figure = draw_recovery_directions(directions, thresholds)
        assert len(figure.axes[0].containers) == 8
        assert "8 of 20 directions" in titles(figure)[0]
        assert_legible(figure)

    def test_nothing_to_draw(self, tables):
        _, directions, thresholds, _ = tables
        with pytest.raises(DataError, match="no study 'cubic', there are quadratic"):
            draw_recovery_directions(directions, thresholds, study="cubic")
        with pytest.raises(DataError, match="directions table: no rows"):
            draw_recovery_directions(directions.head(0), thresholds)
        with pytest.raises(DataError, match="thresholds table: no rows"):
            draw_recovery_directions(directions, thresholds.head(0))


class TestSpectrum:
    def test_bulk_edges_and_outliers(self, make_spectrum, assert_legible):
        table = make_spectrum()
        figure = draw_recovery_spectrum(table)
        (axes,) = figure.axes
        assert axes.get_yscale() == "log"
        assert "units" in axes.get_xlabel()
        edges = [line.get_xdata()[0] for line in axes.lines if line.is_dashed()]
        np.testing.assert_allclose(sorted(edges), table[["edge_low", "edge_high"]].iloc[0])
        points = next(line for line in axes.lines if line.get_marker() == "o")
        leading = table.loc[table["eigenvalue"].abs().nlargest(7).index, "eigenvalue"]
        np.testing.assert_allclose(np.sort(points.get_xdata()), np.sort(leading))
        assert "0.47 % outside the edges" in titles(figure)[0]  # 7 of 1485
        assert_legible(figure)

    @pytest.mark.parametrize("options", [{}, {"seeds": 3}, {"quadrature": True}])
    def test_density_integrates_to_the_bulk_mass(self, make_spectrum, options):
        axes = draw_recovery_spectrum(make_spectrum(**options)).axes[0]
        (patch,) = axes.patches
        outline = patch.get_path().vertices
        # The outline of the histogram: bins from left to right, each with its height.
        corners = outline[(outline[:, 1] > 0)]
        floor = outline[:, 1].min()
        widths = np.diff(corners[:, 0])
        area = np.sum(widths * corners[1:, 1] * (widths > 0))
        assert floor >= 0
        np.testing.assert_allclose(area, 1 - 7 / 1485, rtol=1e-6)

    def test_no_outliers(self, make_spectrum, assert_legible):
        figure = draw_recovery_spectrum(make_spectrum(outliers=False))
        assert "0 % outside the edges" in titles(figure)[0]
        assert_legible(figure)

    @pytest.mark.parametrize("options", [{"quadrature": True}, {"seeds": 3}])
    def test_quadrature_nodes_and_seeds_count_by_their_mass(self, make_spectrum, options):
        figure = draw_recovery_spectrum(make_spectrum(**options))
        points = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
        assert len(points.get_xdata()) == 7 * options.get("seeds", 1)
        assert "0.47 % outside the edges" in titles(figure)[0]

    def test_nothing_to_draw(self, make_spectrum):
        table = make_spectrum()
        with pytest.raises(DataError, match="spectrum table: no rows"):
            draw_recovery_spectrum(table.head(0))
        with pytest.raises(DataError, match="no eigenvalues beside"):
            draw_recovery_spectrum(table.nlargest(7, "eigenvalue"))
        mixed = pd.concat([table, table.assign(sample_size=10)])
        with pytest.raises(DataError, match="more than one"):
            draw_recovery_spectrum(mixed)
        with pytest.raises(NumericalError, match="eigenvalues"):
            draw_recovery_spectrum(table.assign(eigenvalue=np.nan))


def test_tiny_kernel_errors_are_marked_on_the_edge_and_do_not_stretch_the_axis(tables):
    metrics, _, _, kernel = tables
    figure = draw_recovery_mse(metrics, kernel.assign(mse=1e-12))
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low >= 1e-3
        assert high <= 10
        triangles = [line for line in axes.lines if line.get_marker() == "v"]
        assert sum(len(line.get_xdata()) for line in triangles) > 0
        assert all((line.get_ydata() == 1e-3).all() for line in triangles)
