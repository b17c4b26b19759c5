from functools import cache

import numpy as np
import pandas as pd
import pytest

from spectral_laws.errors import DataError
from spectral_laws.figure_registry import load_figures
from spectral_laws.palette import LAWS, ROLE_GROUPS, ROLE_NAMES
from spectral_laws.plotting import draw_figure
from spectral_laws.plotting.curvature.alpha_by_layer import draw as draw_curvature_alpha_by_layer
from spectral_laws.plotting.curvature.audit import draw as draw_curvature_audit
from spectral_laws.plotting.curvature.decomposition import draw as draw_curvature_decomposition
from spectral_laws.plotting.curvature.independence import draw as draw_curvature_independence
from spectral_laws.plotting.curvature.panels import main_models, seed_medians
from spectral_laws.plotting.curvature.power_law import pick_layers
from spectral_laws.plotting.curvature.rank_models import rank_curves, widest_margin
from spectral_laws.plotting.curvature.trajectory import draw as draw_curvature_trajectory
from spectral_laws.plotting.curvature.triangle import draw as draw_curvature_triangle
from spectral_laws.plotting.curvature.triangle import product_interval
from spectral_laws.plotting.curvature.windows import WINDOWS
from spectral_laws.plotting.curvature.windows import draw as draw_curvature_windows

pytestmark = pytest.mark.slow

NO_FIT = "layer3.0.downsample.0"
TOP_K = 20
DRAWN = [name for name in load_figures() if name.startswith("curvature")]
# Figures that show a comparison, or nothing of it, instead of stopping.
LENIENT = {"mechanisms", "trajectory", "participation", "factors", "controls", "audit"}
MAIN = ["resnet18", "vgg11", "mlp", "gpt2", "vit_tiny"]


@pytest.fixture(scope="module")
def tables(make_curvature, audit_table):
    return make_curvature() | {"audit": audit_table}


@pytest.fixture(scope="module")
def with_gaps(make_curvature, audit_table):
    models = ("resnet18", "mlp")
    gaps = make_curvature(no_fit=(NO_FIT, "fc"), experiments=(), models=models)
    return gaps | {"audit": audit_table}


@pytest.fixture(scope="module")
def least(make_curvature, audit_table):
    """One training of a network without convolutions or attention, and two experiments."""
    few = make_curvature(seeds=1, experiments=("classes", "width"), models=("mlp",))
    return few | {"audit": audit_table}


@pytest.fixture(scope="module")
def figures(tables):
    """name -> the figure of the full tables, drawn once; tests do not change it."""
    return cache(lambda name: draw(f"curvature_{name}", tables))


def needed(name):
    """Names of the tables that a figure is drawn from."""
    return [table.split("/")[-1] for table in load_figures()[name].tables]


def draw(name, tables, **options):
    if "top_k" in load_figures()[name].params:
        options.setdefault("top_k", TOP_K)
    return draw_figure(name, **{table: tables[table] for table in needed(name)}, **options)


def of_experiment(tables, name):
    rows = tables["experiments"]
    return rows[rows["final"] & (rows["experiment"] == name)]


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def panel(figure, name):
    """The panel whose title begins with a name."""
    return next(axes for axes in figure.axes if axes.get_title(loc="left").startswith(f"{name}:"))


def texts(axes):
    return " | ".join(text.get_text() for text in axes.texts)


def dots(axes, *, size):
    """Coordinates of all markers of one size."""
    points = [
        line.get_xydata()
        for line in axes.lines
        if line.get_marker() in ("o", "s", "^", "D", "v") and line.get_markersize() == size
    ]
    return np.concatenate(points) if points else np.empty((0, 2))


MEDIAN, FAINT = 3.8, 1.8


class TestAllFigures:
    @pytest.mark.parametrize("name", DRAWN)
    def test_legible(self, figures, assert_legible, name):
        assert_legible(figures(name.removeprefix("curvature_")))

    @pytest.mark.parametrize("name", DRAWN)
    def test_one_seed_and_kinds_missing(self, least, assert_legible, name):
        figure = draw(name, least)
        shown = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
        assert not shown & {"convolution", "conv", "attention", "MLP block"}
        if name != "curvature_trajectory":  # one panel, which says that nothing was measured
            assert_legible(figure)

    @pytest.mark.parametrize("name", DRAWN)
    def test_no_fit_everywhere(self, with_gaps, name):
        missing = {
            table: rows.assign(status="no fit") if "status" in rows else rows
            for table, rows in with_gaps.items()
        }
        if name.removeprefix("curvature_") in LENIENT:
            figure = draw(name, missing)
            assert figure.axes or "without a fit" in figure.get_supxlabel()
        elif name == "curvature_power_law":
            assert all("no fit" in title for title in titles(draw(name, missing)))
        else:
            with pytest.raises(DataError, match=r"no row has a fit|no layer has both"):
                draw(name, missing)

    @pytest.mark.parametrize("name", [name for name in DRAWN if "experiments" in needed(name)])
    def test_the_main_experiment_must_be_there(self, tables, name):
        others = tables["experiments"].query("experiment != 'architectures'")
        if name == "curvature_mechanisms":
            assert draw(name, tables | {"experiments": others}).axes
        else:
            with pytest.raises(DataError, match="no rows of the experiment 'architectures'"):
                draw(name, tables | {"experiments": others})

    def test_unknown_roles_are_refused(self, tables):
        strange = tables["exponents"].assign(role="router")
        with pytest.raises(DataError, match="exponents table: unknown role router"):
            draw_curvature_triangle(strange, tables["experiments"])

    def test_every_role_has_a_name_and_a_family(self):
        assert set(ROLE_GROUPS) == set(ROLE_NAMES)

    def test_main_models_in_the_experiments_order(self, tables):
        assert main_models(tables["experiments"]) == MAIN

    def test_seed_medians(self):
        rows = pd.DataFrame(
            {"seed": [0, 0, 0, 1, 1, 1], "kind": "conv", "alpha": [1.0, 2.0, 9.0, 3.0, 4.0, 5.0]}
        )
        summary = seed_medians(rows, ["kind"], "alpha", confidence=0.95).iloc[0]
        assert summary["centre"] == 3.0
        # Student's quantile at one degree of freedom, of the medians 2 and 4.
        assert summary["high"] - 3.0 == pytest.approx(12.7062, rel=1e-4)


class TestPowerLaw:
    def test_four_layers_of_each_network_with_their_slopes(self, tables, figures):
        figure = figures("power_law")
        names = [title.split("\n")[0] for title in titles(figure)]
        assert names == [
            "resnet18: conv1", "resnet18: layer3.0.conv1", "resnet18: layer4.1.conv2",
            "resnet18: fc", "vgg11: features.0", "vgg11: features.15", "vgg11: features.25",
            "vgg11: classifier.6", "mlp: layers.0", "mlp: layers.1", "mlp: layers.2", "mlp: head",
            "gpt2: blocks.3.attn.qkv", "gpt2: blocks.3.mlp.up", "gpt2: blocks.3.mlp.down",
            "gpt2: head", "vit_tiny: blocks.3.attn.qkv", "vit_tiny: blocks.3.mlp.up",
            "vit_tiny: blocks.3.mlp.down", "vit_tiny: head",
        ]  # fmt: skip
        fits = tables["exponents"].query("final and seed == 0").set_index(["model", "layer"])
        for axes, name in zip(figure.axes, names, strict=True):
            assert axes.get_xscale() == axes.get_yscale() == "log"
            fit = fits.loc[tuple(name.split(": "))]
            text = f"{fit['alpha']:.2f} [{fit['alpha_low']:.2f}, {fit['alpha_high']:.2f}]"
            assert text in axes.get_title(loc="left")
        assert "loss / weight" in figure.get_supxlabel()
        assert "not an eigenvalue (loss / weight$^2$)" in figure.get_supylabel()
        title = figure.legends[0].get_title().get_text()
        assert title == "5 networks, seed 0, batch of 256 samples"

    def test_points_and_line_are_the_tables(self, tables, figures):
        axes = figures("power_law").axes[0]
        points, line, guide = axes.lines
        rows = tables["spectra"].query(
            "model == 'resnet18' and seed == 0 and layer == 'conv1' and final and part == 'whole'"
        )
        assert len(rows) == TOP_K
        np.testing.assert_array_equal(points.get_xdata(), rows["singular_value"])
        np.testing.assert_array_equal(points.get_ydata(), rows["directional_curvature"])
        # The oracle: numpy's own least squares line.
        slope, level = np.polyfit(*np.log([points.get_xdata(), points.get_ydata()]), 1)
        x = line.get_xdata()
        np.testing.assert_allclose(line.get_ydata(), np.exp(level) * x**slope, rtol=1e-9)
        np.testing.assert_allclose(np.diff(np.log(guide.get_ydata())), 2 * np.diff(np.log(x)))

    def test_directions_beyond_top_k_are_not_drawn(self, tables):
        axes = draw("curvature_power_law", tables, top_k=7).axes[0]
        assert len(axes.lines[0].get_xdata()) == 7

    def test_one_network_on_four_panels(self, tables, assert_legible):
        figure = draw("curvature_power_law", tables, model="mlp_100")
        assert [title.split("\n")[0] for title in titles(figure)] == [
            "layer0", "layer1", "layer2", "layer3",
        ]  # fmt: skip
        assert figure.get_size_inches()[0] == 3.4
        assert_legible(figure)

    def test_dropped_entries_are_counted(self, tables):
        figure = draw("curvature_power_law", tables, model="mlp")
        head = figure.axes[-1]
        assert "7 of 9 used" in texts(head)
        assert "2 dropped" in texts(head)
        assert len(head.lines[0].get_xdata()) == 7

    def test_rank_cut_is_counted(self, tables):
        # Spectra of a model measured beyond the top_k of the fits: 11 of its own are missing.
        cut = tables | {
            "spectra": tables["spectra"].assign(n_below_rank=11),
            "exponents": tables["exponents"].assign(n_below_rank=4),
        }
        figure = draw("curvature_power_law", cut, model="mlp")
        assert all("\n4 below rank" in texts(axes) for axes in figure.axes)

    def test_rank_cut_beyond_the_drawn_directions_is_not_counted(self, tables):
        cut = tables | {
            "spectra": tables["spectra"].assign(n_below_rank=11),
            "exponents": tables["exponents"].assign(n_below_rank=0),
        }
        figure = draw("curvature_power_law", cut, model="mlp")
        assert not any("below rank" in texts(axes) for axes in figure.axes)

    def test_layer_without_a_fit(self, with_gaps, assert_legible):
        figure = draw("curvature_power_law", with_gaps, model="resnet18")
        assert titles(figure)[-1] == "fc\nno fit (n < 5 entries)"
        assert len(figure.axes[-1].lines) == 1
        assert_legible(figure)

    def test_no_positive_curvature_at_all(self, with_gaps):
        spectra = with_gaps["spectra"]
        negative = spectra.assign(
            directional_curvature=spectra["directional_curvature"].where(
                spectra["layer"] != "fc", -1.0
            )
        )
        figure = draw("curvature_power_law", with_gaps | {"spectra": negative}, model="resnet18")
        assert "0 of 4 used" in texts(figure.axes[-1])

    @pytest.mark.parametrize("slope", [2.0, 0.0, -1.0])
    def test_text_keeps_off_the_points(self, tables, assert_legible, slope):
        spectra, exponents = tables["spectra"], tables["exponents"]
        # One entry far below the others, where the text would stand.
        wild = np.where(spectra["index"] == 2, 1e-3, 1.0)
        figure = draw(
            "curvature_power_law",
            tables
            | {
                "spectra": spectra.assign(
                    directional_curvature=spectra["singular_value"] ** slope * wild
                ),
                "exponents": exponents.assign(alpha=slope),
            },
            model="resnet18",
        )
        assert_legible(figure)  # this also draws it
        for axes in figure.axes:
            box = axes.texts[0].get_window_extent()
            points = axes.transData.transform(axes.lines[0].get_xydata())
            assert not any(box.contains(*point) for point in points)

    def test_layers_are_picked_by_the_stated_rule(self, tables):
        mlp = tables["spectra"].query("model == 'mlp' and seed == 0")
        assert pick_layers(mlp) == ["layers.0", "layers.1", "layers.2", "head"]
        assert pick_layers(mlp[mlp["layer"] == "head"]) == ["head"]
        assert pick_layers(mlp[mlp["layer"] == "layers.1"]) == ["layers.1"]

    def test_unknown_model(self, tables):
        with pytest.raises(DataError, match="no model 'alexnet', there are resnet18, "):
            draw("curvature_power_law", tables, model="alexnet")


class TestTriangle:
    def test_points_line_and_summary(self, tables, figures):
        rows = tables["exponents"].query("final and model in @MAIN")
        figure = figures("triangle")
        (axes,) = figure.axes
        drawn = dots(axes, size=3.0)
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(rows["alpha"] * rows["gamma"]))
        np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(rows["s"]))
        identity = next(line for line in axes.lines if line.get_marker() == "None")
        np.testing.assert_array_equal(identity.get_xdata(), identity.get_ydata())
        assert axes.get_xlim() == axes.get_ylim()
        assert "87 layers, 3 seeds: 261 fits" in texts(axes)
        assert f"{100 * rows['transfer_error'].median():.2g} %" in texts(axes)
        assert "no fit" not in texts(axes)

    def test_family_is_colour_and_model_is_marker(self, tables, figures):
        axes = figures("triangle").axes[0]
        points = [line for line in axes.lines if line.get_marker() != "None"]
        assert {line.get_marker() for line in points} >= set("os^Dv")
        assert len({line.get_color() for line in points if line.get_markersize() == 3.0}) == 5

    def test_rows_without_a_fit_are_counted(self, with_gaps):
        figure = draw_curvature_triangle(with_gaps["exponents"], with_gaps["experiments"])
        assert "no fit: 6" in texts(figure.axes[0])

    def test_product_interval_to_first_order(self, tables):
        rows = tables["exponents"].head(1).assign(
            alpha=2.0, alpha_low=1.9, alpha_high=2.3, gamma=1.0, gamma_low=0.8, gamma_high=1.1
        )  # fmt: skip
        low, high = product_interval(rows)[["low", "high"]].to_numpy().T
        np.testing.assert_allclose(low, 2 - np.hypot(0.1, 0.4))
        np.testing.assert_allclose(high, 2 + np.hypot(0.3, 0.2))
        # A negative alpha turns gamma's interval round.
        negative = rows.assign(alpha=-2.0, alpha_low=-2.1, alpha_high=-1.7)
        low, high = product_interval(negative)[["low", "high"]].to_numpy().T
        np.testing.assert_allclose(low, -2 - np.hypot(0.1, 0.2))
        np.testing.assert_allclose(high, -2 + np.hypot(0.3, 0.4))


class TestAlphaByLayer:
    def test_layers_in_depth_order_per_model(self, tables):
        exponents = tables["exponents"].sample(frac=1, random_state=3)
        figure = draw_curvature_alpha_by_layer(exponents, tables["experiments"])
        assert sorted(titles(figure)) == [
            "gpt2: 25 layers, 3 seeds", "median over layers", "mlp: 4 layers, 3 seeds",
            "resnet18: 21 layers, 3 seeds", "vgg11: 11 layers, 3 seeds",
            "vit_tiny: 26 layers, 3 seeds",
        ]  # fmt: skip
        names = [label.get_text() for label in panel(figure, "resnet18").get_yticklabels()]
        assert names[0] == "conv1"
        assert names[-1] == "fc"
        assert all(axes.yaxis_inverted() for axes in figure.axes)
        assert len({axes.get_xlim() for axes in figure.axes}) == 1
        assert r"\alpha" in figure.get_supxlabel()

    def test_points_and_intervals_are_the_tables(self, tables, figures):
        figure = figures("alpha_by_layer")
        axes = panel(figure, "mlp")
        drawn = np.concatenate([bar.lines[0].get_xydata() for bar in axes.containers])
        ends = np.concatenate([bar.lines[2][0].get_segments() for bar in axes.containers])
        rows = tables["exponents"].query("model == 'mlp'")
        for (alpha, y), ((low, _), (high, _)) in zip(drawn, ends, strict=True):
            row = rows[np.isclose(rows["alpha"], alpha, rtol=1e-12)].iloc[0]
            assert row["layer_index"] == round(y)
            np.testing.assert_allclose([low, high], row[["alpha_low", "alpha_high"]].tolist())
        assert len(drawn) == len(rows)
        references = [line.get_xdata()[0] for line in axes.lines if line.is_dashed()]
        assert references == [1, 2]

    def test_medians_of_families(self, tables, figures):
        axes = figures("alpha_by_layer").axes[0]
        assert axes.get_title(loc="left") == "median over layers"
        rows = tables["exponents"].query("final and model in @MAIN")
        blocks = rows[(rows["model"] == "gpt2") & rows["role"].str.startswith("mlp")]
        drawn = dots(axes, size=MEDIAN)
        names = [label.get_text() for label in axes.get_yticklabels()]
        for name, part in (
            ("convolution", rows[rows["kind"] == "conv"]),
            ("MLP block, gpt2", blocks),
        ):
            median = part.groupby("seed")["alpha"].median().mean()
            (mine,) = drawn[drawn[:, 1] == names.index(name)]
            assert mine[0] == pytest.approx(median)

    def test_no_fit_is_a_cross_with_its_entries(self, with_gaps, assert_legible):
        exponents = with_gaps["exponents"].copy()
        exponents.loc[(exponents["layer"] == "fc") & (exponents["seed"] == 1), "n_used"] = 2
        figure = draw_curvature_alpha_by_layer(exponents, with_gaps["experiments"])
        axes = panel(figure, "resnet18")
        crosses = [line for line in axes.lines if line.get_marker() == "x"]
        assert sum(len(line.get_xdata()) for line in crosses) == 6
        assert texts(axes) == "n = 2-4 | n = 4"
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert "no fit (n < 5 entries)" in legend
        assert_legible(figure)

    def test_long_names_and_many_layers(self, tables, assert_legible):
        exponents = tables["exponents"].query("final and model == 'gpt2'")
        exponents = pd.concat(
            exponents.assign(
                layer_index=exponents["layer_index"] + 25 * i,
                layer=f"transformer.encoder.{i}." + exponents["layer"] + ".projection",
            )
            for i in range(3)
        )
        figure = draw_curvature_alpha_by_layer(exponents, tables["experiments"])
        axes = panel(figure, "gpt2")
        assert "75 layers, 3 seeds" in axes.get_title(loc="left")
        assert "\u2026" in axes.get_yticklabels()[0].get_text()
        assert_legible(figure)

    def test_interval_that_excludes_its_estimate(self, tables):
        # A percentile bootstrap may do that; the bar then starts at the point.
        exponents = tables["exponents"].query("final")
        exponents = exponents.assign(alpha_low=exponents["alpha"] + 0.05)
        axes = panel(draw_curvature_alpha_by_layer(exponents, tables["experiments"]), "mlp")
        for bar in axes.containers:
            starts = bar.lines[2][0].get_segments()
            np.testing.assert_allclose(
                [one[0, 0] for one in starts], bar.lines[0].get_xdata(), rtol=1e-12
            )


class TestLadder:
    def test_medians_are_the_tables(self, tables, figures):
        upper, lower, *_ = figures("ladder").axes
        rows = tables["ladder"].query("model in @MAIN and ratio == 'fisher/positions'")
        rows = rows[rows["kind"] == "conv"]
        per_seed = rows.groupby("seed")[["median", "slope"]].median()
        # The geometric mean over seeds of a ratio, the mean of a slope.
        assert np.isclose(dots(upper, size=MEDIAN)[:, 1], np.exp(np.log(per_seed["median"]).mean()),
                          rtol=1e-12).any()  # fmt: skip
        assert np.isclose(dots(lower, size=MEDIAN)[:, 1], per_seed["slope"].mean()).any()
        assert upper.get_yscale() == "log"
        assert "87 layers of 5 networks, 3 seeds" in upper.get_title(loc="left")

    def test_linear_is_told_apart_from_other_figures_linear(self, figures):
        shown = {text.get_text() for text in figures("ladder").legends[0].get_texts()}
        assert shown >= {"conv", "all linear", "head"}

    def test_every_layer_is_a_point(self, tables, figures):
        upper, lower, *_ = figures("ladder").axes
        fits = tables["ladder"].query("model in @MAIN and status == 'fit'")
        for axes, value in ((upper, "median"), (lower, "slope")):
            np.testing.assert_allclose(np.sort(dots(axes, size=FAINT)[:, 1]), np.sort(fits[value]))
        missing = len(tables["ladder"].query("model in @MAIN")) - len(fits)
        assert f"{missing} of" in lower.get_title(loc="left")

    def test_a_ratio_without_layers_says_so(self, tables):
        ladder = tables["ladder"].query("ratio != 'exact/kronecker'")
        tables = tables | {"ladder": ladder}
        upper, _, gap, _ = draw("curvature_ladder", tables).axes
        assert "none" in texts(upper)
        assert "No layer has both" in texts(gap)

    def test_gap_against_distance_of_alpha_from_two(self, tables, figures):
        for axes, ratio in zip(figures("ladder").axes[2:], ("kronecker", "kronecker_true"),
                               strict=True):  # fmt: skip
            rows = tables["ladder"].query("model in @MAIN").dropna(subset="median")
            rows = rows[rows["ratio"] == f"exact/{ratio}"]
            key = ["model", "seed", "layer_index"]
            alpha = tables["exponents"].query("final").set_index(key)["alpha"]
            distance = (alpha.loc[pd.MultiIndex.from_frame(rows[key])] - 2).abs()
            gap = np.log10(rows["median"]).abs()
            drawn = dots(axes, size=2.6)
            np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(distance))
            np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(gap))
            # Spearman's is Pearson's of the ranks.
            r = np.corrcoef(distance.rank(), pd.Series(gap.to_numpy()).rank())[0, 1]
            assert f"r = {r:.2f}".replace("-", "\N{MINUS SIGN}") in texts(axes)

    def test_unknown_ratio(self, tables):
        with pytest.raises(DataError, match="unknown ratio exact/fisher"):
            draw(
                "curvature_ladder",
                tables | {"ladder": tables["ladder"].assign(ratio="exact/fisher")},
            )


class TestDecomposition:
    def test_bars_sum_to_alpha(self, tables):
        decomposition = tables["decomposition"]
        figure = draw_curvature_decomposition(decomposition, tables["experiments"])
        axes = panel(figure, "mlp")
        widths = pd.DataFrame(
            [(round(bar.get_y() + bar.get_height() / 2), bar.get_width()) for bar in axes.patches],
            columns=["layer_index", "width"],
        ).query("width != 1.0")  # grey bands are as wide as the panel
        alpha = decomposition.query("model == 'mlp'").groupby("layer_index")["alpha"].mean()
        np.testing.assert_allclose(widths.groupby("layer_index")["width"].sum(), alpha)
        points = np.concatenate([bar.lines[0].get_xydata() for bar in axes.containers
                                 if hasattr(bar, "has_xerr")])  # fmt: skip
        order = points[np.argsort(points[:, 1]), 0]
        np.testing.assert_allclose(order, alpha)

    def test_largest_gap_is_printed(self, tables):
        decomposition = tables["decomposition"].copy()
        decomposition.loc[decomposition["model"] == "mlp", "identity_gap"] = -3e-4
        figure = draw_curvature_decomposition(decomposition, tables["experiments"])
        assert r"$3\times 10^{-4}$" in figure.get_supxlabel()

    def test_layer_without_a_fit_says_so(self, with_gaps):
        figure = draw("curvature_decomposition", with_gaps)
        assert texts(figure.axes[0]) == "no fit | no fit"


class TestIndependence:
    def test_medians_and_points_are_the_tables(self, tables, figures):
        rows = tables["independence"].query("model in @MAIN")
        upper, lower = figures("independence").axes
        for name in ("error_same", "error_halves", "error_repeat", "error_permuted", "error_free"):
            median = np.exp(np.log(100 * rows.groupby("seed")[name].median()).mean())
            assert f"{median:.2g} %" in texts(upper)
            assert np.isclose(dots(upper, size=MEDIAN)[:, 1], median, rtol=1e-12).any()
        assert upper.get_yscale() == "log"
        pairs = dots(lower, size=2.6)
        np.testing.assert_allclose(np.sort(pairs[:, 0]), np.sort(100 * rows["error_free"]))
        below = (rows["error_same"] < rows["error_free"]).sum()
        assert f"{below} of {len(rows)} below the line" in texts(lower)

    def test_a_control_that_is_missing(self, tables):
        rows = tables["independence"].assign(error_halves=np.nan)
        upper, _ = draw_curvature_independence(rows, tables["experiments"]).axes
        assert "none" in texts(upper)


class TestMechanisms:
    def test_slopes_of_alignments(self, tables, figures):
        axes = figures("mechanisms").axes
        for panel, experiment, value in ((0, "layer_norm", "phi_a"), (1, "residual", "phi_delta")):
            rows = of_experiment(tables, experiment)
            medians = rows.groupby(["variant", "seed"])[value].median().groupby("variant").mean()
            drawn = dots(axes[panel], size=MEDIAN)[:, 1]
            np.testing.assert_allclose(np.sort(drawn), np.sort(medians), atol=1e-12)
        labels = [label.get_text() for label in axes[1].get_xticklabels()]
        assert labels == ["0.0\nn = 24", "0.5\nn = 24", "1.0\nn = 63"]

    def test_heads_by_number_of_classes(self, tables, figures):
        axes = figures("mechanisms").axes[2]
        rows = tables["experiments"].query("experiment == 'classes' and status == 'fit'")
        heads = rows.query("kind == 'head'").groupby("value")["alpha"].mean()
        line = next(line for line in axes.lines if line.get_label() == "head")
        np.testing.assert_array_equal(line.get_xdata(), heads.index)
        np.testing.assert_allclose(line.get_ydata(), heads)
        # A head with two classes has one direction, and no fit.
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert labels == ["2\n(head: no fit)", "10", "100", "1000"]

    def test_alignment_of_heads_against_rank(self, tables, figures):
        axes = figures("mechanisms").axes[3]
        rows = tables["spectra"].query("model == 'mlp_100' and kind == 'head' and part == 'whole'")
        means = np.exp(np.log(rows["rho_delta"]).groupby(rows["index"]).mean())
        line = next(line for line in axes.lines if "100 classes" in line.get_label())
        np.testing.assert_allclose(line.get_ydata(), means)
        assert [line.get_xdata()[0] for line in axes.lines if line.is_dashed()] == [2, 10]
        assert "no direction beyond" in axes.get_title(loc="left")

    def test_dash_one_rank_beyond_the_last(self, tables):
        spectra = tables["spectra"].query("index < 10")  # a head with 10 classes has 9 at most
        axes = draw("curvature_mechanisms", tables | {"spectra": spectra}).axes[3]
        assert [line.get_xdata()[0] for line in axes.lines if line.is_dashed()] == [2, 10]

    def test_directions_beyond_the_classes_are_counted(self, tables):
        spectra = tables["spectra"].copy()
        head = (spectra["model"] == "mlp_10") & (spectra["kind"] == "head")
        spectra.loc[head & (spectra["index"] == 9), "index"] = 11
        axes = draw("curvature_mechanisms", tables | {"spectra": spectra}).axes[3]
        assert "3 directions beyond" in axes.get_title(loc="left")

    def test_variants_without_a_fit_are_named(self, tables, figures):
        assert "no fit" not in texts(figures("mechanisms").axes[4])
        rows = tables["experiments"].copy()
        chosen = (rows["experiment"] == "task") & (rows["role"] == "mlp_up")
        chosen &= rows["variant"] == rows.loc[chosen, "variant"].iloc[0]
        rows.loc[chosen, ["status", "alpha"]] = "too few entries", np.nan
        axes = draw("curvature_mechanisms", tables | {"experiments": rows}).axes[4]
        assert texts(axes).count("no fit") == 1

    def test_missing_experiments_are_left_out_and_named(self, with_gaps, least, assert_legible):
        nothing = draw("curvature_mechanisms", with_gaps)
        assert not nothing.axes
        assert all(f"({letter})" in nothing.get_supxlabel() for letter in "abcdefgh")
        some = draw("curvature_mechanisms", least)
        assert [title[:3] for title in titles(some)] == ["(c)", "(d)"]
        assert "(b) skip scale; (e) task" in " ".join(some.get_supxlabel().split())
        assert_legible(some)

    def test_variants_by_role(self, tables, figures):
        axes = figures("mechanisms").axes[4]
        rows = tables["experiments"].query("experiment == 'task' and role == 'mlp_up'")
        medians = rows.groupby(["variant", "seed"])["alpha"].median().groupby("variant").mean()
        drawn = dots(axes, size=MEDIAN)
        place = [label.get_text() for label in axes.get_xticklabels()].index("MLP\nup")
        near = drawn[np.abs(drawn[:, 0] - place) < 0.5, 1]
        np.testing.assert_allclose(np.sort(near), np.sort(medians))


class TestTrajectory:
    def test_alpha_and_shares_are_the_tables(self, tables, figures):
        upper, lower = figures("trajectory").axes
        rows = tables["exponents"].query("model == 'resnet18'")
        convs = rows[rows["kind"] == "conv"].groupby(["epoch", "seed"])["alpha"].median()
        expected = convs.groupby("epoch").mean()
        line = upper.containers[0].lines[0]
        np.testing.assert_array_equal(line.get_xydata()[:, 0], [0, 1, 3, 6, 12])
        np.testing.assert_allclose(line.get_xydata()[:, 1], expected)
        shares = np.stack([bar.lines[0].get_xydata()[:, 1] for bar in lower.containers])
        won = pd.crosstab(rows["rank_model"], rows["epoch"], normalize="columns")
        np.testing.assert_allclose(shares, won.reindex(list(LAWS), fill_value=0.0), atol=1e-12)
        np.testing.assert_allclose(shares.sum(axis=0), 1.0)
        assert titles(draw_curvature_trajectory(rows))[0] == "(a) resnet18: 21 layers, 3 seeds"

    def test_two_networks_and_a_long_training(self, tables, assert_legible):
        rows = tables["exponents"].query("model == 'resnet18'")
        both = pd.concat([rows, rows.assign(model="vgg16", epoch=rows["epoch"] * 10)])
        figure = draw_curvature_trajectory(both)
        assert len(figure.axes) == 4
        assert [axes.get_xscale() for axes in figure.axes[2:]] == ["linear", "symlog"]
        assert_legible(figure)

    def test_one_epoch_alone(self, tables):
        (axes,) = draw_curvature_trajectory(tables["exponents"].query("final")).axes
        assert "No network of this preset was measured" in " ".join(texts(axes).split())


class TestParticipation:
    def test_bound_and_histogram(self, tables, figures):
        axes = figures("participation").axes
        rows = tables["exponents"].query("final and model in @MAIN")
        finite = rows[rows["participation_bound"].notna()]
        below = (finite["participation_ratio"] <= finite["participation_bound"]).sum()
        assert f"{below} of {len(finite)} at or below the bound" in texts(axes[0])
        assert f"bound infinite: {len(rows) - len(finite)}" in texts(axes[0])
        edge = 3 * rows["participation_ratio"].max()
        shown = finite[finite["participation_bound"] <= edge]
        drawn = dots(axes[0], size=2.6)
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(shown["participation_bound"]))
        assert sum(bar.get_height() for bar in axes[1].patches) == len(rows)
        assert f"median {rows['participation_ratio'].median():.2g}" in texts(axes[1])

    def test_first_layer_against_width(self, tables, figures):
        axes = figures("participation").axes[2]
        rows = tables["experiments"].query("experiment == 'width' and layer_index == 0")
        means = rows.groupby("value")["participation_ratio"].mean()
        drawn = dots(axes, size=MEDIAN)
        np.testing.assert_array_equal(drawn[:, 0], means.index)
        np.testing.assert_allclose(drawn[:, 1], means)

    def test_missing_experiments_say_so(self, with_gaps):
        axes = draw("curvature_participation", with_gaps).axes
        assert "The experiment 'width' is not" in " ".join(texts(axes[2]).split())
        assert "The experiment 'depth' is not" in " ".join(texts(axes[3]).split())


class TestRankModels:
    def test_shares_are_the_tables(self, tables, figures):
        axes = figures("rank_models").axes
        rows = tables["exponents"].query("final and model in @MAIN")
        for panel, column in ((0, "model"), (1, "role")):
            shares = pd.crosstab(rows[column], rows["rank_model"], normalize="index")
            bars = [bar for bar in axes[panel].patches if bar.get_width() > 0]
            expected = shares.to_numpy().ravel()
            if panel == 0:  # and of all networks
                whole = rows["rank_model"].value_counts(normalize=True)
                expected = np.concatenate([expected, whole])
            np.testing.assert_allclose(
                np.sort([bar.get_width() for bar in bars]), np.sort(expected[expected > 0])
            )

    def test_examples_have_the_widest_margin(self, tables, figures):
        rows = tables["exponents"].query("final and model in @MAIN")
        axes = figures("rank_models").axes[2:]
        for one, law in zip(axes, LAWS, strict=True):
            won = rows[rows["rank_model"] == law]
            if won.empty:
                assert f"No layer is {LAWS[law][0]}" in texts(one)
                continue
            fit, margin = widest_margin(rows, law)
            others = [f"bic_{other}" for other in LAWS if other != law]
            assert margin == (won[others].min(axis=1) - won[f"bic_{law}"]).max()
            assert f"{fit['model']}, {fit['layer']}" in one.get_title(loc="left")
            spectra = tables["spectra"].query(
                "model == @fit.model and layer == @fit.layer and seed == @fit.seed and final"
                " and part == 'whole'"
            )
            np.testing.assert_array_equal(one.lines[0].get_ydata(), spectra["singular_value"])

    def test_curves_of_exact_laws(self):
        k = np.arange(1.0, 13.0)
        for law, sigma in (
            ("power_law", 3 * k**-1.3),
            ("exponential", 3 * np.exp(-0.4 * k)),
            ("lognormal", 3 * np.exp(-0.2 * np.log(k) - 0.4 * np.log(k) ** 2)),
        ):
            np.testing.assert_allclose(rank_curves(sigma)[law], sigma, rtol=1e-10)

    def test_unknown_law(self, tables):
        with pytest.raises(DataError, match="unknown rank_model cauchy"):
            draw(
                "curvature_rank_models",
                tables | {"exponents": tables["exponents"].assign(rank_model="cauchy")},
            )


class TestFactors:
    def test_correlation_is_pooled_over_the_leading_directions(self, tables, figures):
        rows = tables["spectra"].query(
            "final and part == 'whole' and model in @MAIN and index <= @TOP_K"
        )
        axes = figures("factors").axes[0]
        r = np.corrcoef(2 * np.log(rows["singular_value"]), np.log(rows["kronecker"]))[0, 1]
        assert f"$r$ = {r:.3f}" in texts(axes)
        assert f"{len(rows):,} directions" in texts(axes)
        np.testing.assert_allclose(np.sort(dots(axes, size=1.5)[:, 1]), np.sort(rows["kronecker"]))

    def test_shares_and_ranks_are_the_tables(self, tables, figures):
        axes = figures("factors").axes
        rows = tables["factor_models"].query("model in @MAIN")
        share = rows.query("factor == 'a'")["same"].astype(float).mean()
        assert f"{share:.2f} of 261" in texts(axes[1])
        ranks = np.log(rows.query("factor == 'delta' and role == 'conv'").groupby("seed")[
            "participation_rank"].median())  # fmt: skip
        assert np.isclose(dots(axes[2], size=MEDIAN)[:, 1], np.exp(ranks.mean())).any()

    def test_no_kronecker_curvature(self, tables):
        spectra = tables["spectra"].assign(kronecker=np.nan)
        axes = draw("curvature_factors", tables | {"spectra": spectra}).axes[0]
        assert "No layer has a Kronecker curvature" in texts(axes)


class TestControls:
    def test_negative_ones_are_hollow_and_counted(self, tables, figures):
        rows = tables["finite_differences"]
        axes = figures("controls").axes[0]
        share = (rows["finite_difference"] < 0).mean()
        assert f"{100 * share:.2g} % of {len(rows):,}" in texts(axes)
        drawn = rows[rows["directional_curvature"] > 0]
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
        assert sum(len(line.get_xdata()) for line in hollow) == (
            drawn["finite_difference"] < 0
        ).sum()  # fmt: skip
        np.testing.assert_allclose(
            np.sort(dots(axes, size=2.2)[:, 1]), np.sort(drawn["finite_difference"].abs())
        )

    def test_r2_of_each_layer(self, tables, figures):
        axes = figures("controls").axes[1]
        rows = tables["finite_differences"].query(
            "model == 'mlp' and seed == 1 and layer_index == 0"
        )
        good = rows[rows["finite_difference"] > 0]
        x, y = np.log(good["singular_value"]), np.log(good["finite_difference"])
        assert np.isclose(dots(axes, size=FAINT)[:, 1], np.corrcoef(x, y)[0, 1] ** 2).any()

    def test_ratio_to_the_largest_eigenvalue(self, tables, figures):
        rows = tables["eigenvalues"].query("index == 1")
        ratio = rows["directional_curvature"] / rows["eigenvalue"]
        axes = figures("controls").axes[3]
        np.testing.assert_allclose(np.sort(dots(axes, size=FAINT)[:, 1]), np.sort(ratio))
        assert f"median {ratio.median():.2g}" in axes.get_title(loc="left")

    def test_nothing_positive(self, tables):
        rows = tables["finite_differences"]
        negative = rows.assign(finite_difference=-rows["finite_difference"].abs())
        flat = tables["eigenvalues"].assign(eigenvalue=-1.0)
        axes = draw(
            "curvature_controls",
            tables | {"finite_differences": negative, "eigenvalues": flat},
        ).axes
        assert "100 %" in texts(axes[0]) or "1e+02 %" in texts(axes[0])
        assert "No block has a positive eigenvalue" in " ".join(texts(axes[3]).split())


class TestWindows:
    def test_medians_are_the_tables(self, tables, figures):
        figure = figures("windows")
        axes = panel(figure, "attention")
        rows = tables["windows"].query("model in @MAIN and window == 'q3'")
        rows = rows[rows["role"].str.startswith("attention")]
        median = rows.groupby("seed")["alpha"].median().mean()
        assert np.isclose(dots(axes, size=MEDIAN)[:, 1], median).any()
        assert "24 layers, 3 seeds" in axes.get_title(loc="left")
        assert len(dots(axes, size=MEDIAN)) == 7  # no layer was measured beyond top_k
        for axes in figure.axes:  # every panel names its windows
            labels = [label.get_text().split("\n") for label in axes.get_xticklabels()]
            assert [name for name, _ in labels] == list(WINDOWS.values())

    def test_unknown_window(self, tables):
        with pytest.raises(DataError, match="unknown window top99"):
            draw_curvature_windows(tables["windows"].assign(window="top99"), tables["experiments"])


class TestWeights:
    def test_points_are_the_tables(self, tables, figures):
        upper, lower = figures("weights").axes
        weights = tables["weights"].query("model in @MAIN")
        s = tables["exponents"].query("final").set_index(["model", "seed", "layer_index"])["s"]
        slopes = s.loc[pd.MultiIndex.from_frame(weights[["model", "seed", "layer_index"]])]
        drawn = dots(upper, size=2.6)
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(slopes))
        np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(weights["decay"]))
        below = int((weights["decay"].to_numpy() < slopes.to_numpy()).sum())
        assert f"{below} of {len(weights)} below the line" in texts(upper)
        tails = weights["tail_exponent"].notna().sum()
        assert f"{tails} layers and seeds, no fit: {len(weights) - tails}" in lower.get_title(
            loc="left"
        )

    def test_no_tail_at_all(self, tables):
        weights = tables["weights"].assign(tail_exponent=np.nan)
        _, lower = draw("curvature_weights", tables | {"weights": weights}).axes
        assert "No layer has enough eigenvalues" in texts(lower)


class TestAudit:
    def test_lines_in_the_order_of_the_claims(self, audit_table):
        axes = draw_curvature_audit(audit_table[::-1]).axes[0]
        shown = [text.get_text() for text in axes.texts]
        assert [text for text in shown if text.startswith("B")] == ["B1", "B10", "B11", "B14"]
        assert "1.91 [1.71, 2.21]" in shown
        assert "5 rows of single layers: see the table" in shown

    def test_values_that_agree_stand_together(self, audit_table):
        rows = audit_table.head(1).assign(
            author_value=2.0, author_recomputed=2.0 + 1e-9, our_value=np.nan, our_low=np.nan,
            our_high=np.nan,
        )  # fmt: skip
        axes = draw_curvature_audit(rows).axes[0]
        places = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in "sD"]
        assert abs(places[0] - places[1]) < 1e-6

    def test_scale_holds_all_values_in_order(self, audit_table):
        rows = audit_table.query("claim == 'B10'")
        axes = draw_curvature_audit(rows).axes[0]
        places = {line.get_marker(): line.get_xdata()[0] for line in axes.lines}
        # stored 4.1e5, recomputed 3.2, ours 1.8 [1.6, 2.1]: logarithmic
        low, high = 1.6, 4.1e5
        for marker, value in (("s", 4.1e5), ("D", 3.2), ("o", 1.8)):
            share = np.log(value / low) / np.log(high / low)
            np.testing.assert_allclose(places[marker], 5.55 + 1.2 * share)
        assert "log" in texts(axes)

    def test_only_single_layers(self, audit_table):
        with pytest.raises(DataError, match="no row without a layer"):
            draw_curvature_audit(audit_table[audit_table["layer"] != ""])
