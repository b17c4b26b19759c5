"""The examples, run as a user runs them: what they print, and that it could be otherwise."""

import ast
import io
import re
import runpy
import time
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """Lines that an example prints, run from another folder."""

    def run(name):
        monkeypatch.chdir(tmp_path)
        output, before = io.StringIO(), time.process_time()
        with torch.random.fork_rng(), redirect_stdout(output):
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        # Seconds of a processor, which do not depend on what else runs here.
        assert time.process_time() - before < 60
        return output.getvalue().splitlines()

    return run


def numbers(line):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", line)]


def test_measure_my_network(printed):
    header, *lines = printed("measure_my_network.py")
    rows = {line.split()[0]: line for line in lines}
    assert header.split()[:2] == ["weight", "fit/k"]
    methods = {
        "conv": "exact",
        "attention.in_proj_weight": "exact",
        "attention.out_proj": "exact",
        "mlp.1": "gauss_newton",  # the logits are piecewise linear from here on
        "head": "gauss_newton",
    }
    assert set(rows) == {*methods, "score", "position"}
    directions = {"conv": 9, "head": 9}  # 3 x 3 kernels; the rows of 10 classes sum to zero
    for name, method in methods.items():
        assert rows[name].endswith(method)
        used, k, alpha, low, high, gamma, s = numbers(
            rows[name].removeprefix(name).replace("95 %", "").removesuffix(method)
        )
        assert used <= k == directions.get(name, 20)
        assert low <= alpha <= high
        assert 0.5 < alpha < 2.5
        assert 0.5 < gamma < 4
        assert s == pytest.approx(alpha * gamma, rel=0.2)
    assert "no fit: 1 of 1 directions have h > 0" in rows["score"]  # one row has one direction
    assert "not measured" in rows["position"]


def test_recovery_in_five_lines(printed):
    tree = ast.parse((EXAMPLES / "recovery_in_five_lines.py").read_text())
    code = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt)]
    assert len(set(code)) == 1 + 5  # the docstring is one statement

    header, *lines = printed("recovery_in_five_lines.py")
    assert lines == printed("recovery_in_five_lines.py")[1:]
    thresholds = numbers(header.removeprefix("D / lambda^2"))
    rows = [numbers(line) for line in lines]
    sizes = [row[0] for row in rows]
    measured, theory = ([row[start::2] for row in rows] for start in (1, 2))
    assert thresholds == sorted(thresholds)
    assert len(thresholds) == 6
    assert sizes == sorted(sizes)
    assert sizes[0] < thresholds[0]
    assert all(0 <= cos2 <= 1 for row in (*measured, *theory) for cos2 in row)
    for direction in zip(*measured, strict=True):
        # Below every threshold little is seen; 27 times above the last one all is.
        assert direction[0] < 0.3
        assert direction[-1] > 0.95
        assert all(later > earlier - 0.05 for earlier, later in pairwise(direction))
    assert theory[0] == [0] * 6
    assert measured[-1] == pytest.approx(theory[-1], abs=0.02)


def test_spectral_newton(printed):
    lines = printed("spectral_newton.py")
    alphas = numbers(lines[0])
    assert len(alphas) == 3
    assert all(0.5 < alpha < 3 for alpha in alphas)
    results = {}
    for name in ("AdamW", "Spectral Newton, alpha = 2", "Spectral Newton, measured"):
        (line,) = (line for line in lines if line.startswith(name))
        results[name] = numbers(line.removeprefix(name))
        loss, low, high, accuracy, worst, best = results[name]
        assert 0 < low <= loss <= high < 1  # chance is log 10 = 2.3
        assert 80 < worst <= accuracy <= best <= 100  # chance is 10
        assert worst < best  # seeds differ
    assert len(set(map(tuple, results.values()))) == 3
    assert "proves nothing about which is better" in "\n".join(lines)
