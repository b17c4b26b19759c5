import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from spectral_laws.errors import DataError, NumericalError
from spectral_laws.fitting.slopes import common_slope, log_of
from spectral_laws.palette import LAYER_COLORS, METHOD_COLORS
from spectral_laws.plotting.power_fits import Bootstrap
from spectral_laws.plotting.recovery.depth import draw as draw_recovery_depth
from spectral_laws.plotting.recovery.directions import draw as draw_recovery_directions
from spectral_laws.plotting.recovery.error_exponents import asymptotic, measured_exponents
from spectral_laws.plotting.recovery.error_exponents import draw as draw_recovery_error_exponents
from spectral_laws.plotting.recovery.finite_size import draw as draw_recovery_finite_size
from spectral_laws.plotting.recovery.finite_size import gaps_at_common_ratio
from spectral_laws.plotting.recovery.gamma import draw as draw_recovery_gamma
from spectral_laws.plotting.recovery.mse import draw as draw_recovery_mse
from spectral_laws.plotting.recovery.panels import complete, dodged
from spectral_laws.plotting.recovery.perturbation import draw as draw_recovery_perturbation
from spectral_laws.plotting.recovery.readouts import draw as draw_recovery_readouts
from spectral_laws.plotting.recovery.readouts import threshold_ratios
from spectral_laws.plotting.recovery.sharp_theory import draw as draw_recovery_sharp_theory
from spectral_laws.plotting.recovery.sharp_theory import thinned, threshold_slopes
from spectral_laws.plotting.recovery.spectrum import draw as draw_recovery_spectrum

pytestmark = pytest.mark.slow


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


def theory(axes):
    """(x, y) of the solid lines without markers, in the order drawn."""
    return [
        line.get_data()
        for line in axes.lines
        if line.get_linestyle() == "-" and line.get_marker() in ("None", "")
    ]


def dashed(axes):
    """(x, y) of the lines with dashes."""
    return [line.get_data() for line in axes.lines if line.is_dashed()]


def slopes(line):
    x, y = (np.asarray(values, dtype=float) for values in line)
    return np.diff(np.log(y)) / np.diff(np.log(x))


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def log_mean(rows, value):
    return np.exp(np.log(rows[value]).groupby(rows["sample_size"]).mean())


class TestMse:
    def test_two_second_layers_and_the_overlap(self, tables, assert_legible):
        figure = draw_recovery_mse(tables[0])
        independent, same, overlap = figure.axes
        assert [axes.get_yscale() for axes in figure.axes] == ["log", "log", "linear"]
        assert "independent" in titles(figure)[0]
        assert "same sample" in titles(figure)[1]
        assert "5 seeds" in figure.legends[0].get_title().get_text()
        assert r"\log d" in overlap.get_xlabel()
        rows = tables[0].query("study == 'quadratic' and dimension == 36")
        for axes, layer in ((independent, "independent"), (same, "same_sample")):
            mine = rows[rows["second_layer"] == layer]
            x, centre, low, high = bars(axes)[1]
            means = log_mean(mine, "mse")
            np.testing.assert_allclose(centre, means)
            place = np.log(means.index) / np.log(36)
            np.testing.assert_allclose(x, place - 0.4 * 0.16 * 0.5 / 4, atol=1e-3)  # 2nd of four
            assert np.all((low < centre) & (centre < high))
            np.testing.assert_allclose(theory(axes)[1][1], log_mean(mine, "predicted_mse"))
        mine = rows[rows["second_layer"] == "independent"]
        by_size = mine.groupby("sample_size")
        np.testing.assert_allclose(bars(overlap)[1][1], by_size["feature_overlap"].mean())
        np.testing.assert_allclose(theory(overlap)[1][1], by_size["predicted_overlap"].mean())
        assert_legible(figure)

    def test_staircase_is_the_tables_tail_sum(self, tables):
        axes = draw_recovery_mse(tables[0]).axes[0]
        ((x, y),) = dashed(axes)
        rows = tables[0].query("study == 'quadratic' and dimension == 64 and seed == 0")
        tail = rows.drop_duplicates("sample_size").set_index("sample_size")["tail_mse"]
        inside = np.log(tail.index) / np.log(64)
        drawn = y[np.searchsorted(x, inside, side="right") - 1]
        floor = y.min()
        np.testing.assert_allclose(drawn, np.maximum(tail, floor))
        assert (tail < 0.9).any()
        assert floor <= rows[["mse", "predicted_mse"]].min().min()

    def test_one_colour_per_dimension(self, tables):
        figure = draw_recovery_mse(tables[0])
        colors = [
            [to_hex(bar.lines[0].get_color()) for bar in axes.containers] for axes in figure.axes
        ]
        assert len(set(colors[0])) == 4
        assert colors[0] == colors[1] == colors[2]

    def test_wider_intervals_at_higher_confidence(self, tables):
        narrow = bars(draw_recovery_mse(tables[0], confidence=0.6).axes[0])[0]
        wide = bars(draw_recovery_mse(tables[0], confidence=0.99).axes[0])[0]
        assert np.all(wide[3] > narrow[3])
        np.testing.assert_array_equal(wide[1], narrow[1])

    def test_one_seed_has_no_interval(self, make_recovery, assert_legible):
        metrics, *_ = make_recovery(("wide",), 1)
        figure = draw_recovery_mse(metrics, study="wide")
        assert "1 seed" in figure.legends[0].get_title().get_text()
        for _, centre, low, high in bars(figure.axes[0]):
            np.testing.assert_allclose(low, centre)
            np.testing.assert_allclose(high, centre)
        assert_legible(figure)

    def test_an_interval_that_dwarfs_the_points_is_cut(self, make_recovery):
        metrics, *_ = make_recovery(("quadratic",), 2)
        wild = metrics["mse"].where(metrics["seed"] == 0, metrics["mse"] * 10)
        axes = draw_recovery_mse(metrics.assign(mse=wild)).axes[0]
        assert max(bar[3].max() for bar in bars(axes)) > 1e4
        assert axes.get_ylim()[1] < 1e3  # the points span three decades
        assert all(np.all(bar[1] < axes.get_ylim()[1]) for bar in bars(axes))

    def test_nothing_to_draw(self, tables):
        with pytest.raises(DataError, match="no study 'cubic', there are quadratic"):
            draw_recovery_mse(tables[0], study="cubic")
        with pytest.raises(DataError, match="same_sample"):
            draw_recovery_mse(tables[0].query("second_layer == 'independent'"))

    def test_nan_stops(self, tables):
        broken = tables[0].copy()
        broken.loc[0:3, "mse"] = np.nan
        with pytest.raises(NumericalError, match="mse"):
            draw_recovery_mse(broken)


class TestGamma:
    def test_one_curve_per_gamma(self, tables, assert_legible):
        figure = draw_recovery_gamma(tables[0])
        errors, overlap = figure.axes
        assert len(bars(errors)) == len(bars(overlap)) == 6
        rows = tables[0].query("study == 'gamma_08' and second_layer == 'independent'")
        np.testing.assert_allclose(bars(errors)[4][1], log_mean(rows, "mse"))
        np.testing.assert_allclose(theory(errors)[4][1], log_mean(rows, "predicted_mse"))
        means = rows.groupby("sample_size")["feature_overlap"].mean()
        np.testing.assert_allclose(bars(overlap)[4][1], means)
        assert r"$\gamma$ = 0.8" in legend_texts(figure.legends[0])
        assert_legible(figure)

    def test_studies_must_differ_in_gamma_alone(self, tables):
        metrics = tables[0]
        with pytest.raises(DataError, match="no study named strength"):
            draw_recovery_gamma(metrics, prefix="strength")
        with pytest.raises(DataError, match="differs from the others in"):
            draw_recovery_gamma(metrics, prefix="quadratic")
        double = pd.concat([metrics, metrics.query("study == 'gamma_08'").assign(study="gamma_x")])
        with pytest.raises(DataError, match="same gamma"):
            draw_recovery_gamma(double)

    def test_two_gammas_are_enough(self, tables, assert_legible):
        rows = tables[0][tables[0]["study"].isin(["gamma_02", "gamma_10"])]
        figure = draw_recovery_gamma(rows)
        assert len(bars(figure.axes[0])) == 2
        assert_legible(figure)


class TestDirections:
    def test_overlaps_of_the_largest_dimension(self, tables, assert_legible):
        _, directions, thresholds = tables
        figure = draw_recovery_directions(directions, thresholds)
        assert "d$ = 64" in titles(figure)[0]
        assert "d$ = 200" in titles(figure)[1]
        assert {axes.get_xscale() for axes in figure.axes} == {"log"}
        shown = [1, 4, 6, 9, 11, 14]  # six of 14
        for axes, value in ((figure.axes[1], "cos2"), (figure.axes[3], "angle")):
            drawn = bars(axes)
            assert len(drawn) == len(shown)
            rows = directions.query("study == 'equivalent' and dimension == 200 and direction == 6")
            rows = rows.assign(angle=1 - np.sqrt(rows["cos2"]))
            means = rows.groupby("sample_size")[value].mean()
            # Directions stand side by side at each sample size: the third of six, left of middle.
            step = np.log(means.index[1] / means.index[0])
            shift = np.log(drawn[2][0] / (means.index / 20100))
            np.testing.assert_allclose(shift, -0.4 * step * 0.5 / 6, rtol=0.05)
            np.testing.assert_allclose(drawn[2][1], means)
        predicted = rows.groupby("sample_size")["predicted_cos2"].mean()
        np.testing.assert_allclose(theory(figure.axes[1])[2][1], predicted)
        assert_legible(figure)

    def test_points_and_lines_are_shifted_together(self, tables):
        for axes in draw_recovery_directions(*tables[1:]).axes[:4]:
            for (x, *_), (line, _) in zip(bars(axes), theory(axes), strict=False):
                np.testing.assert_allclose(x, line)

    def test_guide_has_slope_minus_one(self, tables):
        for axes in draw_recovery_directions(*tables[1:]).axes[2:4]:
            (guide,) = dashed(axes)
            np.testing.assert_allclose(slopes(guide), -1)

    def test_count_staircase_and_theory(self, tables):
        _, directions, thresholds = tables
        axes = draw_recovery_directions(directions, thresholds).axes[5]
        rows = directions.query("study == 'equivalent' and dimension == 200")
        for value, drawn in (("cos2", bars(axes)[0][1]), ("predicted_cos2", theory(axes)[0][1])):
            found = (rows[value] >= 0.5).groupby([rows["sample_size"], rows["seed"]]).sum()
            np.testing.assert_allclose(drawn, found.groupby("sample_size").mean())
        ((x, y),) = dashed(axes)
        limits = np.sort(rows["threshold"].unique()) / 20100
        np.testing.assert_allclose(x[1:-1], limits)
        np.testing.assert_allclose(y[1:-1], np.arange(1, 15))

    def test_overlaps_in_units_of_half_recovery(self, tables):
        _, directions, thresholds = tables
        axes = draw_recovery_directions(directions, thresholds).axes[7]
        (points,) = [line for line in axes.lines if line.get_marker() == "."]
        rows = directions.query("study == 'equivalent'").merge(
            thresholds.query("censored == 'no'"), on=["study", "dimension", "seed", "direction"]
        )
        ratio = rows["sample_size"] / rows["half_recovery"]
        drawn = np.sort(np.transpose(points.get_data()), axis=0)
        np.testing.assert_allclose(drawn, np.sort(np.transpose([ratio, rows["cos2"]]), axis=0))
        near = rows.loc[ratio.between(0.9, 1.1), "cos2"]
        assert near.between(0.3, 0.7).all()
        for mask, inside in (
            (ratio <= 0.25, rows["cos2"] <= 0.1),
            (ratio >= 4, rows["cos2"] >= 0.9),
        ):
            assert f"{(mask & inside).sum()} of {mask.sum()}" in axes.get_title(loc="left")
            assert mask.any()

    def test_few_directions(self, make_recovery, assert_legible):
        _, *pair = make_recovery(("depth_quadratic", "smoothing"), 2)
        figure = draw_recovery_directions(*pair, study="depth_quadratic", equivalent="smoothing")
        assert len(bars(figure.axes[0])) == 3
        assert "Gaussian features" in titles(figure)[1]
        assert_legible(figure)

    def test_nothing_to_draw(self, tables):
        with pytest.raises(DataError, match="no study 'cubic', there are quadratic"):
            draw_recovery_directions(*tables[1:], study="cubic")
        with pytest.raises(DataError, match="no study 'cubic'"):
            draw_recovery_directions(*tables[1:], equivalent="cubic")


class TestReadouts:
    def test_three_readouts_of_both_kinds_of_features(self, tables, assert_legible):
        figure = draw_recovery_readouts(tables[0], tables[2])
        assert "d$ = 49" in titles(figure)[0]
        assert "d$ = 100" in titles(figure)[1]
        assert [len(bars(axes)) for axes in figure.axes] == [3] * 4 + [2] * 2
        metrics = tables[0].query("second_layer == 'independent'")
        for column, (study, size) in enumerate(
            (("quadratic_tanh", 1225), ("equivalent_tanh", 5050))
        ):
            rows = metrics[metrics["study"] == study]
            x, centre, *_ = bars(figure.axes[column])[1]
            np.testing.assert_allclose(centre, log_mean(rows, "mse"))
            place = np.unique(rows["sample_size"]) / size
            np.testing.assert_allclose(x, dodged(place, 1, 3, logarithmic=True))
            means = rows.groupby("sample_size")["predicted_overlap"].mean()
            np.testing.assert_allclose(theory(figure.axes[2 + column])[1][1], means)
        assert_legible(figure)

    def test_a_missing_readout_is_left_out(self, tables, assert_legible):
        figure = draw_recovery_readouts(tables[0].query("readout != 'relu'"), tables[2])
        assert [len(bars(axes)) for axes in figure.axes] == [2] * 4 + [1] * 2
        assert len(figure.legends[0].get_texts()) == 4
        assert_legible(figure)

    def test_ratios_of_the_thresholds(self, tables, assert_legible):
        rows = tables[2].query("study in ('equivalent', 'equivalent_tanh') and dimension == 100")
        factor = np.where(rows["readout"] == "tanh", 1.5, 1.0)
        first = (rows["direction"] == 1) & (rows["seed"] == 0) & (rows["readout"] == "tanh")
        half = (rows["half_recovery"] * factor).mask(first)
        rows = rows.assign(half_recovery=half)
        ratios = threshold_ratios(rows, "equivalent", "equivalent_tanh", 0.95)
        np.testing.assert_allclose(ratios["centre"], 1.5)  # same inputs, so the same curves
        assert 1 not in set(ratios["direction"])
        others = tables[2][~tables[2].index.isin(rows.index)]
        figure = draw_recovery_readouts(tables[0], pd.concat([others, rows]))
        x, centre, *_ = bars(figure.axes[5])[0]
        np.testing.assert_allclose(centre, 1.5)
        assert "tanh 1" in titles(figure)[5] or len(x) < 9
        assert_legible(figure)

    def test_nothing_beside_the_identity(self, tables):
        with pytest.raises(DataError, match="no study quadratic_tanh or quadratic_relu"):
            draw_recovery_readouts(tables[0].query("readout == 'identity'"), tables[2])
        moved = tables[0].copy()
        moved.loc[moved["readout"] != "identity", "dimension"] += 1
        with pytest.raises(DataError, match="no dimension in common"):
            draw_recovery_readouts(moved, tables[2])
        other = tables[0].copy()
        other.loc[other["readout"] == "tanh", "gamma"] = 1.2
        with pytest.raises(DataError, match=r"has gamma .* its readout tanh has 1\.2"):
            draw_recovery_readouts(other, tables[2])


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
        assert "0.47 % of mass outside edges" in titles(figure)[0]  # 7 of 1485
        (bulk,) = [line for line in axes.lines if line.get_label() == "Gaussian bulk"]
        inside = table[table["density"] > 0].sort_values("eigenvalue")
        np.testing.assert_allclose(bulk.get_ydata(), inside["density"])
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
        assert "0 % of mass outside edges" in titles(figure)[0]
        assert_legible(figure)

    @pytest.mark.parametrize("options", [{"quadrature": True}, {"seeds": 3}])
    def test_quadrature_nodes_and_seeds_count_by_their_mass(self, make_spectrum, options):
        figure = draw_recovery_spectrum(make_spectrum(**options))
        points = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
        assert len(points.get_xdata()) == 7 * options.get("seeds", 1)
        assert "0.47 % of mass outside edges" in titles(figure)[0]

    def test_nothing_to_draw(self, make_spectrum):
        table = make_spectrum()
        with pytest.raises(DataError, match="no eigenvalues beside"):
            draw_recovery_spectrum(table.nlargest(7, "eigenvalue"))
        mixed = pd.concat([table, table.assign(sample_size=10)])
        with pytest.raises(DataError, match="more than one"):
            draw_recovery_spectrum(mixed)
        with pytest.raises(NumericalError, match="eigenvalues"):
            draw_recovery_spectrum(table.assign(eigenvalue=np.nan))


class TestSharpTheory:
    def test_one_point_per_direction_and_size(self, tables, assert_legible):
        _, directions, thresholds = tables
        figure = draw_recovery_sharp_theory(directions, thresholds)
        axes = figure.axes[0]
        points = [line for line in axes.lines if line.get_marker() not in ("None", "")]
        rows = directions.query("features == 'equivalent' and readout == 'identity'")
        by = ["study", "dimension", "sample_size", "direction"]
        means = rows.groupby(by)[["predicted_cos2", "cos2"]].mean()
        assert sum(line.get_xdata().size for line in points) == len(means)
        drawn = np.concatenate([np.transpose(line.get_data()) for line in points])
        np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(means.to_numpy(), axis=0))
        assert f"{len(means):,} points" in axes.get_title()
        assert_legible(figure)

    def test_constant_of_the_threshold(self, tables):
        _, directions, thresholds = tables
        axes = draw_recovery_sharp_theory(directions, thresholds).axes[1]
        # Studies in alphabetical order, each by d: equivalent at three, steep, wide, then true.
        x, centre, low, high = bars(axes)[3]
        rows = complete(thresholds.query("study == 'steep'"), "half_recovery")
        logs = np.log(rows["half_recovery"] / rows["threshold"])
        shown = [k in thinned(rows["direction"].max()) for k in rows["direction"].unique()]
        expected = np.exp(logs.groupby(rows["direction"]).mean())[shown][::-1]
        np.testing.assert_allclose(centre, expected)
        np.testing.assert_allclose(x, np.unique(rows["weight"].abs().round(9))[shown[::-1]])
        assert np.all((low <= centre) & (centre <= high))
        hollow = [bar for bar in axes.containers if bar.lines[0].get_markerfacecolor() == "white"]
        assert len(hollow) == 4
        assert sorted(y[0] for _, y in dashed(axes)) == [0.5, 1.0]
        predicted = complete(thresholds.query("study == 'steep'"), "predicted_half_recovery")
        logs = np.log(predicted["predicted_half_recovery"] / predicted["threshold"])
        lines = [y for _, y in theory(axes)]
        expected = np.exp(logs.groupby(predicted["direction"]).mean())[::-1]
        assert any(len(y) == len(expected) and np.allclose(y, expected) for y in lines)

    def test_exponents_of_the_widest_study(self, tables):
        rows = tables[2].query("features == 'equivalent' and readout == 'identity'")
        name, strength, size = threshold_slopes(rows)
        assert name == "wide"
        kept = complete(rows[rows["study"] == "wide"], "half_recovery")
        law = 2 * kept["weight"].abs() ** -1.8 * kept["feature_dimension"] ** 1.3
        wide = kept.assign(half_recovery=law)
        assert threshold_slopes(wide) == ("wide", pytest.approx(0.9), pytest.approx(1.3))
        assert (strength, size) == (pytest.approx(1, abs=0.1), pytest.approx(1, abs=0.1))
        assert threshold_slopes(rows[rows["study"] == "steep"]) is None

    def test_many_directions_are_thinned(self):
        assert thinned(5) == [1, 2, 3, 4, 5]
        assert thinned(100)[:2] == [1, 2]
        assert thinned(100)[-1] == 100
        assert len(thinned(100)) <= 16

    def test_directions_censored_for_some_seed_are_counted(self, tables, assert_legible):
        _, directions, thresholds = tables
        rows = thresholds.query("study == 'quadratic'").copy()
        mine = (rows["direction"] == 2) & (rows["seed"] == 1)
        known = complete(rows, "half_recovery")
        before = len(known[["dimension", "direction"]].drop_duplicates())
        rows.loc[mine, "half_recovery"] = np.nan
        known = complete(rows, "half_recovery")
        assert len(known[["dimension", "direction"]].drop_duplicates()) == before - 4
        rest = thresholds.query("study == 'equivalent'")
        figure = draw_recovery_sharp_theory(directions, pd.concat([rest, rows]))
        assert "directions left out" in titles(figure)[1]
        assert_legible(figure)

    def test_nothing_to_draw(self, tables):
        _, directions, thresholds = tables
        with pytest.raises(DataError, match="directions table: no study with equivalent"):
            draw_recovery_sharp_theory(directions.query("features == 'hermite'"), thresholds)
        with pytest.raises(DataError, match="thresholds table: no study 'cubic'"):
            draw_recovery_sharp_theory(directions, thresholds, study="cubic")


class TestFiniteSize:
    def test_points_closed_form_and_fitted_power(self, tables, make_population, assert_legible):
        population = make_population()
        figure = draw_recovery_finite_size(population, tables[1], resamples=200)
        limit, share, finite, width = figure.axes
        lost = population.assign(loss=1 - population["cos2"])
        first = lost.query("direction == 1").groupby("dimension")
        x, centre, low, high = bars(limit)[0]
        np.testing.assert_allclose(x, first["loss"].mean().index)
        np.testing.assert_allclose(centre, first["loss"].mean())
        assert np.all((low <= centre) & (centre <= high))
        assert np.all(low < high)
        np.testing.assert_allclose(theory(limit)[0][1], first["tilt"].mean())
        kept = lost[lost["cos2"] >= 0.5].groupby(["dimension", "seed"])["loss"].mean()
        np.testing.assert_allclose(bars(limit)[1][1], kept.groupby("dimension").mean())
        (expected,) = np.polyfit(np.log(x), np.log(centre), 1)[:1]
        np.testing.assert_allclose(slopes(dashed(limit)[0]), expected)
        text = f"{expected:.2f}".replace("-", "\N{MINUS SIGN}")
        assert any(f"direction 1, slope {text} [" in t for t in legend_texts(limit.get_legend()))
        hidden = (lost["cos2"] < 0.5).groupby([lost["dimension"], lost["seed"]]).mean()
        np.testing.assert_allclose(bars(share)[0][1], hidden.groupby("dimension").mean())
        assert hidden.max() > 0
        assert "91.5" in titles(figure)[2]  # 25^3.2 / 325
        _, gaps = gaps_at_common_ratio(tables[1].query("study == 'quadratic'"))
        mean = gaps.query("direction == 1").groupby("dimension")["gap"].mean()
        np.testing.assert_allclose(bars(finite)[0][1], mean)
        # cos^2 = 1 / (1 + (n / n*)^-2.5) by construction: from 0.1 to 0.9 in log(81) / 2.5.
        x, centre, low, high = bars(width)[0]
        np.testing.assert_allclose(x, [50, 100, 200, 400])  # at 25 the grid starts above 0.1
        np.testing.assert_allclose(theory(width)[0][1], np.log(81) / 2.5, rtol=0.05)
        ends = [level / (1 - 3 / x) for level in (0.9, 0.1)]  # true features lose 3 / d
        expected = np.subtract(*[np.log(end / (1 - end)) for end in ends]) / 2.5
        np.testing.assert_allclose(centre, expected, rtol=0.05)
        assert np.all((low <= centre) & (centre <= high))
        assert np.log(9) in [line.get_ydata()[0] for line in width.lines if line.is_dashed()]
        (expected,) = np.polyfit(np.log(x), centre, 1)[:1]
        text = f"{expected:.2f}".replace("-", "\N{MINUS SIGN}")
        assert any(f"slope {text} [" in t for t in legend_texts(width.get_legend()))
        assert_legible(figure)

    def test_gap_is_interpolated_at_the_common_ratio(self, tables):
        rows = tables[1].query("study == 'quadratic'")
        ratio, gaps = gaps_at_common_ratio(rows)
        assert ratio == rows.query("dimension == 25")["sample_size"].max() / 325
        last = rows.query("dimension == 25 and seed == 0 and direction == 1").iloc[-1]
        found = gaps.query("dimension == 25 and seed == 0 and direction == 1").iloc[0]
        np.testing.assert_allclose(found["gap"], last["predicted_cos2"] - last["cos2"])
        curve = rows.query("dimension == 64 and seed == 2 and direction == 3")
        found = gaps.query("dimension == 64 and seed == 2 and direction == 3").iloc[0]
        near = curve[np.abs(np.log(curve["sample_size"] / 2080 / ratio)) < 0.7]
        assert near["cos2"].min() <= found["cos2"] <= near["cos2"].max()

    def test_a_gap_below_zero_is_counted_and_two_seeds_have_no_interval(
        self, make_recovery, make_population, assert_legible
    ):
        _, directions, _ = make_recovery(("quadratic", "smoothing"), 2)
        directions.loc[directions["study"] == "smoothing", "cos2"] *= 0.85  # does not reach 0.9
        above = directions["dimension"] == 49
        directions.loc[above, "cos2"] = directions.loc[above, "predicted_cos2"] + 1e-3
        figure = draw_recovery_finite_size(make_population(2), directions)
        texts = legend_texts(figure.axes[2].get_legend())
        assert all("not positive at 1 of 4" in text for text in texts)
        assert all("no interval" in text for text in texts)
        assert len(bars(figure.axes[2])[0][0]) == 3
        assert "not crossed at 5" in " ".join(legend_texts(figure.axes[3].get_legend()))
        assert_legible(figure)

    def test_nothing_to_draw(self, tables, make_population):
        with pytest.raises(DataError, match="no study 'cubic'"):
            draw_recovery_finite_size(make_population(), tables[1], study="cubic")
        rows = tables[1].query("study in ('quadratic', 'smoothing')")
        apart = rows[
            ((rows["dimension"] == 64) == (rows["sample_size"] > 3e5))
            | (rows["study"] == "smoothing")
        ]
        with pytest.raises(DataError, match="in common"):
            draw_recovery_finite_size(make_population(), apart, resamples=10)


class TestDepth:
    def test_sample_sizes_exponents_and_errors(self, tables, make_baselines, assert_legible):
        metrics, directions, _ = tables
        baselines = make_baselines()
        figure = draw_recovery_depth(metrics, directions, baselines, resamples=50)
        assert_legible(figure)
        axes = figure.axes[0]
        spectral, polynomial, *_ = bars(axes)
        np.testing.assert_allclose(spectral[0], [25, 50, 100, 200, 400])
        # cos^2 = 1/2 at n = 1.5 D / lambda^2 by construction, and MSE = 1/2 at n = 0.1 d^2.
        strength = directions.query("study == 'smoothing' and direction == 1")["weight"].abs().max()
        np.testing.assert_allclose(spectral[1], 1.5 * spectral[0] / strength**2, rtol=0.15)
        np.testing.assert_allclose(polynomial[1], 0.1 * polynomial[0] ** 2, rtol=0.15)
        assert np.all((spectral[2] <= spectral[1]) & (spectral[1] <= spectral[3]))
        exponents = [float(np.ravel(slopes(line))[0]) for line in dashed(axes)]
        np.testing.assert_allclose(exponents, [1, 2])
        texts = legend_texts(axes.get_legend())
        (fitted,) = np.polyfit(np.log(polynomial[0]), np.log(polynomial[1]), 1)[:1]
        assert texts[1].startswith(f"polynomial kernel: {fitted:.2f} [")
        # The quadratic grid, up to n = 4100, does not reach 0.1 d^4 at d = 16.
        assert any(
            "1/2 not crossed at" in text for text in legend_texts(figure.axes[1].get_legend())
        )
        rows = baselines.query("study == 'depth_linear' and dimension == 100 and method == 'rbf'")
        drawn = {
            to_hex(bar.lines[0].get_color()): values
            for bar, values in zip(figure.axes[2].containers, bars(figure.axes[2]), strict=True)
        }
        assert set(drawn) == {to_hex(color) for color in METHOD_COLORS.values()}
        np.testing.assert_allclose(drawn[to_hex(METHOD_COLORS["rbf"])][1], log_mean(rows, "mse"))

    def test_exact_kernels_are_marked_at_the_edge(self, tables, make_baselines, assert_legible):
        metrics, directions, _ = tables
        baselines = make_baselines()
        exact = (baselines["method"] == "polynomial") & (baselines["sample_size"] > 500)
        figure = draw_recovery_depth(
            metrics, directions, baselines.assign(mse=baselines["mse"].where(~exact, 1e-12)),
            resamples=10,
        )  # fmt: skip
        axes = figure.axes[2]
        marks = [
            line
            for line in axes.lines
            if "arrow" in str(line.get_marker()) and line.get_xdata().size
        ]
        assert sum(len(line.get_xdata()) for line in marks) > 0
        for line in marks:
            np.testing.assert_allclose(line.get_ydata(), axes.get_ylim()[0])
        assert axes.get_ylim()[0] >= 1e-4
        assert_legible(figure)

    def test_two_seeds_have_no_interval(self, make_recovery, make_baselines, assert_legible):
        studies = ("smoothing", "wide", "depth_linear", "depth_quadratic")
        metrics, directions, _ = make_recovery(studies, 2)
        figure = draw_recovery_depth(metrics, directions, make_baselines(seeds=2))
        assert all("no interval" in t for t in legend_texts(figure.axes[0].get_legend())[:4])
        assert_legible(figure)

    def test_nothing_to_draw(self, tables, make_baselines):
        metrics, directions, _ = tables
        with pytest.raises(DataError, match="baselines table: no study 'depth_quadratic'"):
            draw_recovery_depth(metrics, directions, make_baselines(("depth_linear",)))
        flat, low = make_baselines().assign(mse=1.0), directions.assign(cos2=0.1)
        with pytest.raises(DataError, match="crosses 1/2"):
            draw_recovery_depth(metrics, low, flat, resamples=10)


class TestPerturbation:
    def test_expansion_bound_and_norm(self, make_perturbation, assert_legible):
        table = make_perturbation()
        figure = draw_recovery_perturbation(table)
        expansion, bound, norm = figure.axes
        assert_legible(figure)
        drawn = np.sort(np.concatenate([bar[1] for bar in bars(expansion)]))
        largest = table[
            ((table["degree"] == 1) & (table["dimension"] == 80))
            | ((table["degree"] == 2) & (table["dimension"] == 14))
        ]
        cells = largest.groupby(["degree", "direction", "sample_size"])
        kept = cells["resolved"].all()
        means = cells["expansion_error"].apply(lambda v: np.exp(np.log(v).mean()))
        assert 0 < kept.sum() < len(kept)
        np.testing.assert_allclose(drawn, np.sort(means[kept]))
        for guide in dashed(expansion):
            np.testing.assert_allclose(slopes(guide), 2)
        for guide in dashed(norm):
            np.testing.assert_allclose(slopes(guide), -0.5)
        # 3 k by construction, as long as the sine is below its cap.
        linear = bars(bound)[0]
        np.testing.assert_allclose(linear[0], [1, 2, 3, 4])
        rows = table.query("study == 'linear'")
        ratio = np.log(rows["davis_kahan"] / rows["sin_theta"])
        by_teacher = ratio.groupby([rows["direction"], rows["dimension"], rows["seed"]]).mean()
        np.testing.assert_allclose(linear[1], np.exp(by_teacher.groupby("direction").mean()))
        x, centre, *_ = bars(norm)[1]
        rows = table.query("study == 'linear' and dimension == 60 and direction == 1")
        np.testing.assert_allclose(centre, log_mean(rows, "operator_norm"))
        np.testing.assert_allclose(x, np.unique(rows["sample_size"]) / 60)

    def test_fitted_slopes_have_an_intercept_per_group(self, make_perturbation):
        x = np.array([1.0, 2, 4, 1, 3, 9])
        rows = pd.DataFrame({"g": [0, 0, 0, 1, 1, 1], "x": x, "y": x**1.7 * [5, 5, 5, 1, 1, 1]})
        for kept, expected in ((rows, 1.7), (rows.iloc[[0, 3]], np.nan)):
            slope = common_slope(log_of(kept, "x"), log_of(kept, "y"), kept, ["g"])
            assert slope(np.arange(len(kept))) == pytest.approx(expected, nan_ok=True)
        expansion, _, norm = titles(draw_recovery_perturbation(make_perturbation()))
        assert "fitted: 2.00 ($q$ = 1), 2.00" in expansion
        assert "\N{MINUS SIGN}0.5" in norm

    def test_one_degree_and_one_seed(self, make_perturbation, assert_legible):
        table = make_perturbation(1).query("degree == 1")
        figure = draw_recovery_perturbation(table)
        assert len(dashed(figure.axes[0])) == 1
        assert_legible(figure)

    def test_nothing_to_draw(self, make_perturbation):
        table = make_perturbation()
        with pytest.raises(DataError, match="no row is resolved"):
            draw_recovery_perturbation(table.assign(resolved=False))
        with pytest.raises(NumericalError, match="expansion_error"):
            draw_recovery_perturbation(table.assign(expansion_error=0.0))


class TestErrorExponents:
    def test_law_theory_and_measurement(self, tables, make_error_exponents, assert_legible):
        table = make_error_exponents()
        figure = draw_recovery_error_exponents(table, tables[0], resamples=50)
        assert_legible(figure)
        flat, steep, *gaps = figure.axes
        x, y = theory(steep)[0]
        np.testing.assert_allclose(y, -1 + 1 / (2 * x))
        color = LAYER_COLORS["same_sample"]
        means = table.query("second_layer == 'same_sample'").groupby(["n_directions", "gamma"])
        points = [
            line for line in steep.lines if line.get_color() == color and line.get_marker() == "o"
        ]
        filled = [line for line in points if line.get_markerfacecolor() == color]
        expected = means["exponent"].mean()
        for width, lines in ((1000, filled), (30, [p for p in points if p not in filled])):
            drawn = [line.get_ydata()[0] for line in lines]
            np.testing.assert_allclose(drawn, expected.loc[width].loc[0.6:])
        lines = [line for line in gaps[1].lines if line.get_color() == color]
        assert len(lines) == 4  # gammas above 1/2
        for line, gamma in zip(lines, (0.6, 0.8, 1.0, 1.5), strict=True):
            values = expected.xs(gamma, level="gamma") - asymptotic(gamma)
            np.testing.assert_allclose(line.get_ydata(), values)
        # Measured: steep alone above 1/2, wide at three d below.
        assert len(bars(steep)) == 1
        assert len(bars(flat)) == 3

    def test_measured_exponent_is_the_slope_inside_the_window(self, tables):
        rows = tables[0].query("study == 'steep' and second_layer == 'independent'")
        (found,) = measured_exponents(rows, bootstrap=Bootstrap(0.95, 100))
        squares = np.arange(1, 31) ** -2.0
        squares /= squares.sum()
        means = rows.groupby("sample_size")["mse"].mean()
        inside = means[(means.index >= 2080 / squares[2]) & (means.index <= 2080 / squares[14])]
        assert 3 <= len(inside) < len(means)
        np.testing.assert_allclose(
            found.slope, np.polyfit(np.log(inside.index), np.log(inside), 1)[0]
        )
        assert found.interval[0] <= found.slope <= found.interval[1]
        n = np.geomspace(inside.index[0], inside.index[-1], 400)
        tails = [squares[n_ < 2080 / squares].sum() for n_ in n]
        np.testing.assert_allclose(found.tail, np.polyfit(np.log(n), np.log(tails), 1)[0])

    def test_few_directions_or_no_law_are_left_out(self, tables):
        metrics = tables[0].query("second_layer == 'independent'")
        bootstrap = Bootstrap(0.95, 10)
        assert measured_exponents(metrics.query("study == 'equivalent'"), bootstrap=bootstrap) == []
        steep = metrics.query("study == 'steep'")
        assert measured_exponents(steep.assign(gamma=0.5), bootstrap=bootstrap) == []
        assert measured_exponents(steep.assign(gamma=0.0), bootstrap=bootstrap) == []

    def test_one_side_of_one_half(self, tables, make_error_exponents, assert_legible):
        table = make_error_exponents(gammas=(0.8, 1.0), widths=(30,), seeds=1)
        figure = draw_recovery_error_exponents(table, tables[0], resamples=10)
        assert len(figure.axes) == 2
        assert_legible(figure)

    def test_nothing_to_draw(self, tables, make_error_exponents):
        with pytest.raises(DataError, match="no gamma with a power law"):
            draw_recovery_error_exponents(make_error_exponents(gammas=(0.5,)), tables[0])
        hermite = tables[0].query("features == 'hermite'")
        with pytest.raises(DataError, match="no study with equivalent features"):
            draw_recovery_error_exponents(make_error_exponents(), hermite)
