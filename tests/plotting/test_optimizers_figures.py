"""Figures of the race: what is drawn is what the tables say."""

from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_hex

from spectral_laws.claims.registry import load_claims
from spectral_laws.errors import DataError
from spectral_laws.figure_registry import load_figures
from spectral_laws.palette import THEORY
from spectral_laws.plotting import draw_figure
from spectral_laws.plotting.optimizers.gains import PAPER_GAINS, reference_gains, tuning_costs
from spectral_laws.plotting.optimizers.layer_rates import PAPER_GAIN, paired_gains, with_mean
from spectral_laws.plotting.optimizers.panels import ACCURACY, LOSS, looks
from spectral_laws.plotting.optimizers.race import learning_curves, training_seconds
from spectral_laws.plotting.optimizers.responses import relative_spectrum

pytestmark = pytest.mark.slow

NAMES = ["race", "gains", "responses", "layer_rates"]


@pytest.fixture(scope="module")
def tables(make_optimizers):
    return make_optimizers()


@pytest.fixture(scope="module")
def figures(tables):
    """name -> the figure of the full tables, drawn once; tests do not change it."""
    return cache(lambda name: draw(name, tables))


def needed(name):
    """Names of the tables that a figure is drawn from."""
    return [table.split("/")[-1] for table in load_figures()[f"optimizers_{name}"].tables]


def draw(name, tables, **options):
    used = {table: tables[table] for table in needed(name)}
    return draw_figure(f"optimizers_{name}", **used, **options)


def diverge(table, epoch, **where):
    """The table with the trainings ``where`` diverged from an epoch on."""
    lost = table["epoch"] >= epoch if "epoch" in table else table["seed"] >= 0
    for column, value in where.items():
        lost &= table[column] == value
    return table.assign(
        diverged=table["diverged"] | lost,
        test_loss=table["test_loss"].where(~lost),
        test_accuracy=table["test_accuracy"].where(~lost, 0.1),
    )


def of_race(tables, name):
    return tables["race"][tables["race"]["race"] == name]


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def legend_texts(owner):
    legends = owner.legends if hasattr(owner, "legends") else [owner.get_legend()]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def points(axes, *, marker=None, size=None):
    """Coordinates of all markers of a shape and size, and their lines' colours."""
    lines = [
        line
        for line in axes.lines
        if line.get_marker() not in ("None", None, "")
        and (marker is None or line.get_marker() in marker)
        and (size is None or line.get_markersize() == size)
    ]
    found = [np.column_stack([line.get_xdata(), line.get_ydata()]) for line in lines]
    return np.concatenate(found) if found else np.empty((0, 2))


def curve(axes, color, dash="-"):
    """The line of a method."""
    (line,) = (
        line for line in axes.lines if line.get_color() == color and line.get_linestyle() == dash
    )
    return line


class TestAllFigures:
    @pytest.mark.parametrize("name", NAMES)
    def test_legible(self, figures, assert_legible, name):
        assert_legible(figures(name))

    @pytest.mark.parametrize("name", NAMES)
    def test_one_race_and_one_seed(self, make_optimizers, assert_legible, name):
        assert_legible(draw(name, make_optimizers(seeds=1, races=("images",))))

    @pytest.mark.parametrize("name", NAMES)
    def test_three_races(self, make_optimizers, assert_legible, name):
        assert_legible(draw(name, make_optimizers(seeds=2, races=("images", "text", "digits"))))

    @pytest.mark.parametrize("name", ["race", "gains"])
    @pytest.mark.parametrize("method", ["muon", "adamw"])
    def test_diverged_trainings_are_stated(self, tables, assert_legible, name, method):
        race = diverge(tables["race"], 3, method=method, seed=1)
        figure = draw(name, tables | {"race": race})
        stated = f"diverged: {looks([method])[method].name} (1 of 5)"
        assert sum(stated in title for title in titles(figure)) == 2
        assert any("diverge" in text for text in legend_texts(figure))
        assert_legible(figure)

    @pytest.mark.parametrize("name", ["race", "gains"])
    def test_everything_diverged_at_once(self, tables, assert_legible, name):
        figure = draw(name, tables | {"race": diverge(tables["race"], 1)})
        assert sum("SOAP (5 of 5)" in title for title in titles(figure)) == 2
        assert_legible(figure)

    def test_methods_differ_in_colour_and_in_marker(self, tables):
        found = looks(tables["race"]["method"])
        assert len({to_hex(look.color) for look in found.values()}) == len(found) == 8
        assert len({look.marker for look in found.values()}) == 8

    def test_methods_with_other_names(self, tables, assert_legible):
        renamed = {
            name: table.replace({"method": {"soap": "my_soap", "muon": "x"}})
            for name, table in tables.items()
        }
        figure = draw("gains", renamed)
        assert "my soap" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert_legible(figure)
        other = looks(["my_soap", "x", "adamw"])
        assert other["my_soap"].color != other["x"].color
        assert other["adamw"] == looks(["adamw"])["adamw"]


class TestRace:
    def test_curves_are_means_over_seeds(self, tables, figures):
        figure = figures("race")
        images, text, images_seconds, text_seconds = figure.axes
        for axes, race, column, scale in (
            (images, "images", "test_accuracy", 100),
            (text, "text", "test_loss", 1),
        ):
            rows = of_race(tables, race)
            for method, look in looks(rows["method"]).items():
                means = scale * rows[rows["method"] == method].groupby("epoch")[column].mean()
                line = curve(axes, look.color)
                np.testing.assert_array_equal(line.get_xdata(), means.index)
                np.testing.assert_allclose(line.get_ydata(), means)
        assert images.get_ylabel() == "test accuracy (%)"
        assert text.get_ylabel() == "test loss (nats per token)"
        for below, above in ((images_seconds, images), (text_seconds, text)):
            assert below.get_xscale() == "log"
            muon = looks(["muon"])["muon"].color
            np.testing.assert_array_equal(
                curve(below, muon).get_ydata(), curve(above, muon).get_ydata()
            )
            assert below.get_xlabel() == "seconds of training, without tests"

    @pytest.mark.parametrize(("worst", "starts_at_80"), [(0.91, True), (0.6, False)])
    def test_ends_above_90_percent_are_told_apart(self, tables, worst, starts_at_80):
        race = tables["race"].copy()
        last = race["epoch"] == race.groupby("race")["epoch"].transform("max")
        race.loc[last & (race["race"] == "images"), "test_accuracy"] = 0.97
        race.loc[last & (race["race"] == "images") & (race["method"] == "sgd"),
                 "test_accuracy"] = worst  # fmt: skip
        for axes in draw("race", tables | {"race": race}).axes[::2]:
            low, high = axes.get_ylim()
            assert (low == 80) == starts_at_80
            assert low < 100 * worst < 97 < high

    def test_seconds_are_cumulated_medians(self, tables, figures):
        times = tables["race_times"]
        muon = times.query("race == 'images' and method == 'muon'")
        expected = muon.pivot_table(index="epoch", columns="seed", values="seconds")
        expected = np.cumsum(np.median(expected.to_numpy(), axis=1))
        line = curve(figures("race").axes[2], looks(["muon"])["muon"].color)
        np.testing.assert_allclose(line.get_xdata(), expected)
        # A pause of one training moves nothing.
        paused = times.assign(seconds=times["seconds"].where(times.index != muon.index[2], 1e6))
        kept = training_seconds(paused).query("race == 'images' and method == 'muon'")
        assert kept["seconds"].max() < 1.2 * expected[-1]

    def test_interval_is_students(self, tables):
        rows = tables["race"].query("race == 'images' and method == 'soap'")
        curves = learning_curves(
            rows, training_seconds(tables["race_times"]), ACCURACY, confidence=0.95
        )
        values = 100 * rows.loc[rows["epoch"] == 8, "test_accuracy"]
        # Student's quantile at four degrees of freedom
        half = 2.776445 * values.std(ddof=1) / np.sqrt(5)
        last = curves[curves["epoch"] == 8].iloc[0]
        assert last["high"] - last["centre"] == pytest.approx(half, rel=1e-6)

    def test_number_of_trainings_and_samples_are_stated(self, figures):
        assert titles(figures("race"))[:2] == [
            "images: resnet18, 80 steps, 5 seeds, 500 test samples",
            "text: gpt2, 50 steps, 5 seeds, 2560 test tokens",
        ]  # fmt: skip
        # The narrower panels of the gains may break the line.
        narrow = [" ".join(title.split()) for title in titles(figures("gains")) if title]
        assert narrow == titles(figures("race"))[:2]

    def test_a_loss_ends_and_an_accuracy_goes_on_where_a_training_diverges(self, tables):
        race = diverge(tables["race"], 3, method="muon", seed=1)
        seconds = training_seconds(tables["race_times"])
        of_muon = race.query("method == 'muon'")
        text = learning_curves(of_muon.query("race == 'text'"), seconds, LOSS, confidence=0.95)
        assert text["epoch"].tolist() == [1, 2]
        assert text["diverged"].tolist() == [False, True]
        images = learning_curves(
            of_muon.query("race == 'images'"), seconds, ACCURACY, confidence=0.95
        )
        assert images["epoch"].tolist() == [*range(1, 9)]
        assert images["diverged"].tolist() == [epoch >= 3 for epoch in range(1, 9)]
        assert images["seeds"].tolist() == [5] * 8
        crosses = [points(axes, marker="x") for axes in draw("race", tables | {"race": race}).axes]
        assert [len(cross) for cross in crosses] == [1, 1, 1, 1]
        assert crosses[0][0, 0] == 3
        assert crosses[1][0, 0] == 2

    def test_missing_times_are_named(self, tables):
        times = tables["race_times"].query("method != 'soap' or race != 'text'")
        with pytest.raises(DataError, match="race_times table: no times of 'soap' in race 'text'"):
            draw("race", tables | {"race_times": times})


class TestGains:
    def test_gains_are_differences_of_the_same_seed(self, tables):
        shuffled = tables["race"].sample(frac=1, random_state=0)
        last = tables["race"].query("race == 'images' and epoch == 8").set_index(["method", "seed"])
        gains = reference_gains(shuffled.query("race == 'images'"), ACCURACY)
        assert len(gains) == 7 * 5
        for row in gains.itertuples():
            difference = last.loc[(row.method, row.seed), "test_accuracy"]
            difference -= last.loc[("adamw", row.seed), "test_accuracy"]
            assert row.gain == pytest.approx(100 * difference)

    def test_lower_losses_are_positive_gains(self, tables):
        last = tables["race"].query("race == 'text' and epoch == 5 and seed == 2")
        loss = last.set_index("method")["test_loss"]
        gains = reference_gains(tables["race"].query("race == 'text'"), LOSS)
        (muon,) = gains.query("method == 'muon' and seed == 2")["gain"]
        assert muon == pytest.approx(loss["adamw"] - loss["muon"])
        assert muon > 0

    def test_points_and_means_are_the_tables(self, tables, figures):
        images, _, text, _ = figures("gains").axes
        for axes, race, measure in ((images, "images", ACCURACY), (text, "text", LOSS)):
            gains = reference_gains(of_race(tables, race), measure)
            low, high = axes.get_xlim()
            expected = np.sort(gains["gain"].clip(low, high))
            np.testing.assert_allclose(np.sort(points(axes, size=2.4)[:, 0]), expected)
            means = gains.groupby("method")["gain"].mean().clip(low, high)
            np.testing.assert_allclose(np.sort(points(axes, size=4.2)[:, 0]), np.sort(means))

    def test_methods_far_away_are_arrowheads_with_their_value(self, tables, figures):
        axes, side = figures("gains").axes[:2]
        gains = reference_gains(tables["race"].query("race == 'images'"), ACCURACY)
        mean = gains.loc[gains["method"] == "sgd_by_damping", "gain"].mean()
        assert mean < axes.get_xlim()[0]
        (arrow,) = points(axes, marker="<")
        assert arrow[0] == axes.get_xlim()[0]
        assert any(text.startswith(f"\N{MINUS SIGN}{-mean:.2f} [") for text in texts(side))

    def test_paper_band_for_accuracies_alone_and_always_in_view(self, figures):
        (claim,) = (claim for claim in load_claims() if claim.id == "B14")
        assert (claim.accept.low, claim.accept.high) == PAPER_GAINS
        images, _, text, _ = figures("gains").axes
        (band,) = images.patches
        assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx(PAPER_GAINS)
        assert images.get_xlim()[1] > PAPER_GAINS[1]
        assert not text.patches
        assert "percentage points" in images.get_xlabel()
        assert "nats per token" in text.get_xlabel()

    def test_no_gain_at_all(self, tables, assert_legible):
        race = tables["race"]
        adamw = race[race["method"] == "adamw"]
        same = race[["race", "method", "seed", "epoch"]].merge(
            adamw.drop(columns="method"), on=["race", "seed", "epoch"]
        )
        figure = draw("gains", tables | {"race": same})
        for axes in (figure.axes[0], figure.axes[2]):
            low, high = axes.get_xlim()
            assert low < 0 < high
        assert texts(figure.axes[3]).count("+0.000 [0.000, 0.000]") == 7
        assert_legible(figure)

    def test_a_lost_pair_stands_at_its_losers_side(self, tables):
        for method, side in (("muon", 0), ("adamw", 1)):
            race = diverge(tables["race"], 4, method=method, seed=1, race="text")
            figure = draw("gains", tables | {"race": race})
            axes, beside = figure.axes[2:]
            crosses = points(axes, marker="x")
            assert set(crosses[:, 0]) == {axes.get_xlim()[side]}
            assert len(crosses) == (1 if method == "muon" else 7)
            assert texts(beside).count("no mean") == len(crosses)
            # all trainings are still there
            assert len(points(axes, size=2.4)) + len(crosses) == 35

    def test_tuning_is_what_the_tables_say(self, tables, figures):
        costs = tuning_costs(tables["tuning"], tables["tuning_times"])
        costs = costs.set_index(["race", "method"])
        spent = tables["tuning_times"].groupby(["race", "method"])["seconds"].sum()
        for key, row in costs.iterrows():
            assert row["seconds"] == pytest.approx(spent[key])
            assert row["trainings"] == 12  # six candidates, two trainings of each
            grid = tables["tuning"].set_index(["race", "method"]).loc[[key]]
            assert grid.query("chosen")["learning_rate"].item() == row["learning_rate"]
            expected = {grid["learning_rate"].min(): "lower", grid["learning_rate"].max(): "upper"}
            assert row["edge"] == expected.get(row["learning_rate"], "")
        assert set(costs["edge"]) == {"lower", "upper", ""}
        shown = texts(figures("gains").axes[1])
        assert shown[-5:] == ["mean [interval]", "rate", "decay", "runs", "tuning time (s)"]
        row = costs.loc[("images", "adamw")]
        (start,) = (i for i, text in enumerate(shown) if text.startswith("itself "))
        assert row["edge"] == "lower"
        assert shown[start + 1 : start + 5] == ["0.001 \N{DOWNWARDS ARROW}", "0", "12", "53"]

    def test_the_row_of_adamw_is_its_own_level(self, tables, figures):
        _, images, _, text = figures("gains").axes
        for side, race, column, scale, decimals in (
            (images, "images", "test_accuracy", 100, 2),
            (text, "text", "test_loss", 1, 3),
        ):
            rows = of_race(tables, race).query("method == 'adamw'")
            values = scale * rows.loc[rows["epoch"] == rows["epoch"].max(), column]
            half = 2.776445 * values.std(ddof=1) / np.sqrt(5)
            numbers = (values.mean(), values.mean() - half, values.mean() + half)
            mean, low, high = (f"{number:.{decimals}f}" for number in numbers)
            assert texts(side).count(f"itself {mean} [{low}, {high}]") == 1

    def test_a_lost_adamw_has_no_level_in_loss_and_one_in_accuracy(self, tables):
        race = diverge(tables["race"], 4, method="adamw", seed=1)
        axes = draw("gains", tables | {"race": race}).axes
        assert "itself: no mean" in texts(axes[3])
        (level,) = (text for text in texts(axes[1]) if text.startswith("itself "))
        last = race.query("race == 'images' and method == 'adamw' and epoch == 8")
        assert level.startswith(f"itself {100 * last['test_accuracy'].mean():.2f} [")

    def test_one_seed_has_a_level_without_interval(self, make_optimizers):
        tables = make_optimizers(seeds=1, races=("images",))
        last = tables["race"].query("method == 'adamw' and epoch == 8")
        level = f"itself {100 * last['test_accuracy'].item():.2f}"
        assert level in texts(draw("gains", tables).axes[1])

    def test_one_learning_rate_has_no_edge(self, tables):
        one = tables["tuning"].query("chosen")
        costs = tuning_costs(one, tables["tuning_times"])
        assert set(costs["edge"]) == {""}

    def test_missing_tuning_and_missing_reference_are_named(self, tables):
        without = tables["tuning"].query("method != 'soap'")
        with pytest.raises(DataError, match="tuning table: no training of 'soap' in race 'images'"):
            draw("gains", tables | {"tuning": without})
        unchosen = tables["tuning"].assign(chosen=False)
        with pytest.raises(DataError, match="tuning table: 0 choices of 'adamw' in race 'images'"):
            draw("gains", tables | {"tuning": unchosen})
        times = tables["tuning_times"].query("method != 'soap'")
        with pytest.raises(DataError, match="tuning_times table: no times of 'soap' in race"):
            draw("gains", tables | {"tuning_times": times})
        race = tables["race"].query("method != 'adamw'")
        with pytest.raises(DataError, match="race 'images' has a partner of 'adamw'"):
            draw("gains", tables | {"race": race})


class TestResponses:
    def test_lines_are_shares_of_the_largest(self, tables, figures):
        axes = figures("responses").axes
        assert [title.split(",")[0] for title in titles(figures("responses"))] == [
            "images: layer1.0.conv1", "images: layer4.1.conv2",
        ]  # fmt: skip
        first = titles(figures("responses"))[0]
        assert first.endswith(", 16 directions, $\\sigma_1$ = 0.032 (loss / weight)")
        for panel, layer in zip(axes, ("layer1.0.conv1", "layer4.1.conv2"), strict=True):
            rows = tables["responses"]
            rows = rows[rows["layer"] == layer]
            assert panel.get_xscale() == panel.get_yscale() == "log"
            for method, look in looks(rows["method"]).items():
                mine = rows[rows["method"] == method]
                dash = "--" if method == "sgd_by_damping" else "-"  # on the line of sgd
                line = curve(panel, look.color, dash)
                np.testing.assert_allclose(line.get_xdata(), mine["sigma"] / mine["sigma"].max())
                size = mine["response"].abs()
                np.testing.assert_allclose(line.get_ydata(), size / size.max())

    def test_hollow_markers_are_the_negative_updates(self, tables, figures):
        panel = figures("responses").axes[1]
        look = looks(["adamw"])["adamw"]
        rows = tables["responses"].query("layer == 'layer4.1.conv2' and method == 'adamw'")
        hollow = [
            len(line.get_xdata())
            for line in panel.lines
            if line.get_color() == look.color and line.get_markerfacecolor() == "white"
        ]
        assert sum(hollow) == (rows["response"] < 0).sum() > 0

    def test_theory_meets_the_exact_spectrum(self, tables, figures):
        panel = figures("responses").axes[0]
        dashed = [line for line in panel.lines if line.get_color() == THEORY]
        dashed = [line for line in dashed if line.get_linestyle() == "--"]
        assert len(dashed) == 2
        exact = tables["responses"].query("layer == 'layer1.0.conv1'")
        for line, method in zip(dashed, ("spectral_newton_1", "spectral_newton_2"), strict=True):
            sigma, response = relative_spectrum(exact[exact["method"] == method])
            drawn = np.interp(sigma[::-1], line.get_xdata(), line.get_ydata())
            np.testing.assert_allclose(drawn, response[::-1], rtol=1e-6)

    def test_share_on_the_diagonal_is_in_the_legend(self, figures):
        shown = legend_texts(figures("responses").axes[0])
        assert "AdamW: 8.7 %" in shown
        assert "SOAP: 31 %" in shown
        assert "Muon: 99.9 %" in shown
        assert "SGD, momentum: 100 %" in shown
        title = figures("responses").axes[0].get_legend().get_title().get_text()
        assert title.startswith("method, and its share")

    def test_methods_on_one_line_are_told(self, figures):
        shown = legend_texts(figures("responses").axes[1])
        assert "SGD, rate / damping: 100 %\n(on the line of SGD, momentum)" in shown
        assert sum("on the line of" in text for text in shown) == 1

    def test_no_update_and_zero_values_are_stated(self, tables, assert_legible):
        table = tables["responses"]
        still = (table["method"] == "sgd") | ((table["method"] == "muon") & (table["k"] == 3))
        figure = draw("responses", {"responses": table.assign(
            response=table["response"].where(~still, 0.0),
            diagonal_share=table["diagonal_share"].where(table["method"] != "sgd", 0.0),
        )})  # fmt: skip
        shown = legend_texts(figure.axes[0])
        assert "SGD, momentum: no update" in shown
        assert "not shown: 17 values T = 0" in shown
        assert_legible(figure)

    def test_one_direction(self, tables, assert_legible):
        figure = draw("responses", {"responses": tables["responses"].query("k == 1")})
        assert ", 1 direction," in titles(figure)[0]
        assert_legible(figure)


class TestLayerRates:
    def test_gains_are_differences_of_the_same_seed(self, tables):
        shuffled = tables["layer_rates"].sample(frac=1, random_state=0)
        gains = paired_gains(shuffled).set_index(["race", "seed", "variant"])["gain"]
        accuracy = tables["layer_rates"].set_index(["race", "seed", "variant"])["test_accuracy"]
        assert len(gains) == len(accuracy) - len(accuracy.unstack()) > 0
        for (race, seed, variant), gain in gains.items():
            difference = accuracy[race, seed, variant] - accuracy[race, seed, "none"]
            assert gain == pytest.approx(100 * difference)

    def test_points_and_means_are_the_tables(self, make_optimizers):
        tables = make_optimizers(races=("images", "digits"))
        (axes,) = draw("layer_rates", tables).axes
        gains = with_mean(paired_gains(tables["layer_rates"]))
        np.testing.assert_allclose(np.sort(points(axes, size=2.2)[:, 1]), np.sort(gains["gain"]))
        means = gains.groupby(["race", "variant"])["gain"].mean()
        np.testing.assert_allclose(np.sort(points(axes, size=3.8)[:, 1]), np.sort(means))
        names = [label.get_text() for label in axes.get_xticklabels()]
        assert names == ["$b=0.5$", "$b=1$", "mean,\n$b>0$", "inverse\n$b=-1$",
                         "exchanged\n$b=1$"]  # fmt: skip
        by_variant = gains.pivot_table(index=["race", "seed"], columns="variant", values="gain")
        np.testing.assert_allclose(
            by_variant["mean"], 0.5 * (by_variant["b = 0.5"] + by_variant["b = 1"])
        )
        # The strips of a variant stand around its tick.
        inverse = gains.loc[gains["variant"] == "inverse", "gain"]
        small = points(axes, size=2.2)
        np.testing.assert_allclose(
            np.sort(small[np.abs(small[:, 0] - 3) < 0.5, 1]), np.sort(inverse)
        )

    def test_number_of_trainings_and_resolution_are_stated(self, tables, figures):
        label = legend_texts(figures("layer_rates"))[0]
        rows = tables["layer_rates"].query("race == 'images' and variant == 'none'")
        accuracy = 100 * rows["test_accuracy"].mean()
        assert "mean over seeds, 95 % interval" in legend_texts(figures("layer_rates"))
        assert label == (
            "images (resnet18): 5 seeds, 4 layers,\n"
            f"{accuracy:.4g} % without; one test sample is 0.2 points"
        )

    def test_diverged_trainings_are_crosses_and_count(self, tables, assert_legible):
        for variant, pairs in (("b = 1", 1), ("none", 4)):
            table = diverge(tables["layer_rates"], 0, variant=variant, seed=2)
            figure = draw("layer_rates", {"layer_rates": table})
            (axes,) = figure.axes
            assert len(points(axes, marker="x")) == pairs
            assert len(points(axes, size=2.2)) == 25 - pairs
            assert "one of the pair diverged" in legend_texts(figure)
            gains = with_mean(paired_gains(table))
            means = gains.groupby("variant")["gain"].mean()
            np.testing.assert_allclose(np.sort(points(axes, size=3.8)[:, 1]), np.sort(means))
            assert_legible(figure)

    def test_the_dashed_line_is_the_claims_limit(self, figures):
        (claim,) = (claim for claim in load_claims() if claim.id == "B15")
        assert claim.accept.high == PAPER_GAIN
        (axes,) = figures("layer_rates").axes
        levels = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
        assert levels == [PAPER_GAIN]
        low, high = axes.get_ylim()
        assert low < 0 < PAPER_GAIN < high

    def test_trainings_without_a_partner_are_left_out_or_refused(self, tables):
        table = tables["layer_rates"]
        one = table[~((table["variant"] == "none") & (table["seed"] == 0))]
        assert set(paired_gains(one)["seed"]) == {1, 2, 3, 4}
        with pytest.raises(DataError, match="no training has a partner without layer rates"):
            draw("layer_rates", {"layer_rates": table[table["variant"] != "none"]})
