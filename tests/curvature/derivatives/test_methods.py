"""The choice of auto is verified before it is trusted."""

import logging

import numpy as np
import pytest
import torch
from torch import nn

from spectral_laws.curvature import measure_directional_curvature
from spectral_laws.curvature.introspection import linearity


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_wrong_claim_of_linearity_is_found_and_measured_exactly(
    dtype, monkeypatch, caplog, naive_curvature
):
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 3)).to(dtype)
    x, y = torch.randn(8, 4, dtype=dtype), torch.arange(8) % 3
    honest = measure_directional_curvature(model, x, y)
    assert [s.method for s in honest] == ["exact", "gauss_newton"]
    assert not caplog.records
    monkeypatch.setattr(linearity, "_LINEAR", linearity._LINEAR | {"Gelu"})
    with caplog.at_level(logging.WARNING):
        spectra = measure_directional_curvature(model, x, y)
    assert [s.method for s in spectra] == ["exact", "gauss_newton"]
    (record,) = caplog.records
    assert "layer 0 looks piecewise linear" in record.getMessage()
    expected = np.array(naive_curvature(model, x, y, spectra[0]))
    np.testing.assert_allclose(
        spectra[0].directional_curvature,
        expected,
        rtol=1e-3 if dtype == torch.float32 else 1e-9,
        atol=1e-5 * np.abs(expected).max() if dtype == torch.float32 else 1e-14,
    )


def test_a_float32_network_passes_its_check_without_a_warning(caplog):
    """However confident it is, and with a layer that is dead in the two samples of the check."""
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )
    x = torch.randn(12, 1, 8, 8)
    with torch.no_grad():
        model[4].weight *= 100
    y = model(x).argmax(1)
    x[:2] = 0.0
    with torch.no_grad():
        model[0].bias.fill_(-0.1)
    spectra = measure_directional_curvature(model, x, y)
    assert [s.method for s in spectra] == ["gauss_newton"] * 2
    assert not caplog.records


def test_the_fast_path_of_attention_is_switched_off_and_on_again():
    layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(12, 3)).double().eval()
    x, y = torch.randn(5, 3, 4).double(), torch.arange(5) % 3
    # Only the last layer needs a gradient, so that attention would take its fast path.
    states = []
    layer.register_forward_pre_hook(
        lambda *_: states.append(torch.backends.mha.get_fastpath_enabled())
    )
    measure_directional_curvature(model, x, y, layers=["2"])
    assert states
    assert not any(states)
    assert torch.backends.mha.get_fastpath_enabled()
