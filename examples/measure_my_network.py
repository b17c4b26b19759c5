"""Measure the curvature exponents of any torch network, layer by layer.

    python examples/measure_my_network.py

Trains a small network with a convolution, attention, layer norms and linear layers on
scikit-learn's digits for a few seconds, then measures the loss curvature h_k along the singular
directions of every layer's gradient, with singular values sigma_k. To measure yours, change the two
lines marked YOURS, and leave the training out if your network is trained.

Printed, one row per weight: directions used in the fits and measured; alpha of h ~ sigma^alpha with
its 95 % bootstrap interval; gamma of sigma_k ~ k^-gamma; s of h_k ~ k^-s; which pass gave the
curvatures (both are exact where they are used); and of a weight without a fit, why.
"""

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from spectral_laws.curvature import fit_exponents, measure_directional_curvature


class Network(nn.Module):
    """Convolution, attention over 4 x 4 patches, an MLP, and a weighted mean over patches."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.position = nn.Parameter(0.02 * torch.randn(16, 32))
        self.norm = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.ReLU())
        self.score = nn.Linear(32, 1)
        self.head = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, 10) of images (B, 1, 8, 8)."""
        patches = self.pool(self.conv(images).relu()).flatten(2).mT + self.position
        seen = self.norm(patches)
        patches = patches + self.attention(seen, seen, seen, need_weights=False)[0]
        shares = self.score(patches).softmax(1)
        logits: Tensor = self.head((shares * self.mlp(patches)).sum(1))
        return logits


def digits() -> tuple[Tensor, Tensor]:
    """Images (1797, 1, 8, 8) in 0..1 and classes (1797,)."""
    images, classes = load_digits(return_X_y=True)
    inputs = torch.tensor(images / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    return inputs, torch.tensor(classes, dtype=torch.int64)


def train(network: nn.Module, inputs: Tensor, targets: Tensor, *, epochs: int) -> None:
    """AdamW on shuffled batches of 64."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(targets)), 64):
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(inputs[batch]), targets[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def measure(network: nn.Module, inputs: Tensor, targets: Tensor) -> pd.DataFrame:
    """The table of exponents, one row per layer."""
    tables = []
    for index, layer in enumerate(measure_directional_curvature(network.eval(), inputs, targets)):
        sigma, h = layer.singular_values, layer.directional_curvature
        if len(sigma) == 0:  # no gradient: one row of zeros says so
            sigma, h = np.zeros(1), np.zeros(1)
        columns = {
            "layer_index": index,
            "layer": layer.layer,
            "kind": layer.kind,
            "index": np.arange(1, len(sigma) + 1),
            "singular_value": sigma,
            "directional_curvature": h,
            "n_below_rank": layer.n_below_rank,
            "method": layer.method,
        }
        tables.append(pd.DataFrame(columns))
    # The other columns tell apart networks, epochs and parts of the batch in larger tables.
    spectra = pd.concat(tables).assign(
        model="mine", architecture="mine", role="", seed=0, epoch=0, final=True, part="whole"
    )
    exponents = fit_exponents(spectra, top_k=20, confidence=0.95, resamples=1000, seed=0)
    return exponents.merge(spectra[["layer", "method"]].drop_duplicates())


def main() -> None:
    """Train, measure, print."""
    torch.manual_seed(0)
    network = Network()  # YOURS: any module that gives logits (B, classes) or (B, T, classes)
    inputs, targets = digits()  # YOURS: inputs (B, ...) and int64 classes (B,) or (B, T)
    train(network, inputs, targets, epochs=5)
    table = measure(network, inputs[:256], targets[:256])

    print(f"{'weight':<24}{'fit/k':>7}{'alpha':>7} {'[95 %]':<14}{'gamma':>6}{'s':>7}  method")
    for row in table.to_dict("records"):
        line = f"{row['layer']:<24}{row['n_used']:>4}/{row['n_directions']:<2}"
        if row["status"] == "fit":
            interval = f"[{row['alpha_low']:.2f}, {row['alpha_high']:.2f}]"
            line += f"{row['alpha']:>7.2f} {interval:<14}{row['gamma']:>6.2f}{row['s']:>7.2f}"
            print(f"{line}  {row['method']}")
        else:
            print(f"{line}  {row['status']}: {row['reason']}")
    weights = dict(network.named_parameters(remove_duplicate=False))
    measured = {id(weights.get(f"{name}.weight", weights.get(name))) for name in table["layer"]}
    for name, weight in network.named_parameters():
        if weight.ndim > 1 and id(weight) not in measured:
            print(f"{name:<24} not measured: no linear, convolutional or attention layer's weight")


if __name__ == "__main__":
    main()
