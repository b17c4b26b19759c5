"""Small text in that corner of a panel which holds the least."""

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from spectral_laws.plotting.style import SMALL


def write_corner(axis: Axes, text: str, *, white: bool = True) -> None:
    """Small text in the corner that holds the fewest points; the limits must be set before.

    On ``white`` where intervals may pass below.
    """
    right, up = np.concatenate([*map(_drawn, axis.lines), np.empty((0, 2))]).T
    width, height = _size(axis, text)
    corners = {
        (side, end): int((across & along).sum())
        for end, along in (("top", up > 1 - height), ("bottom", up < height))
        for side, across in (("left", right < width), ("right", right > 1 - width))
    }
    side, end = min(corners, key=lambda corner: corners[corner])
    axis.text(
        0.97 if side == "right" else 0.03, 0.97 if end == "top" else 0.04, text,
        transform=axis.transAxes, ha=side, va=end, fontsize=SMALL, zorder=6,
        bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1.0} if white else None,
    )  # fmt: skip


def _size(axis: Axes, text: str) -> NDArray[np.float64]:
    """Width and height of a text as shares of a panel, on the safe side."""
    lines = [re.sub(r"\\[a-z]+", "x", line) for line in text.split("\n")]
    longest = max(len(re.sub(r"[${}^_]", "", line)) for line in lines)
    em = SMALL / 72
    box = axis.get_position()  # before the layout is known, a little too small
    figure = axis.get_figure(root=True)
    assert figure is not None
    inches = figure.get_size_inches() * [box.width, box.height]
    share: NDArray[np.float64] = em * np.array([0.6 * longest + 1, 1.3 * len(lines) + 1]) / inches
    return share


def _drawn(line: Line2D) -> NDArray[np.float64]:
    """A line's points as shares of its panel; of a straight line also those between."""
    axis = line.axes
    if axis is None or line.get_transform() is not axis.transData:  # a level across the panel
        return np.empty((0, 2))
    to_axes = axis.transData + axis.transAxes.inverted()
    points: NDArray[np.float64] = to_axes.transform(np.asarray(line.get_xydata()))
    if line.get_marker() in ("None", "") and len(points) == 2:
        share = np.linspace(0, 1, 30)[:, None]
        points = (1 - share) * points[0] + share * points[1]
    return points
