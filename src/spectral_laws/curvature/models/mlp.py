"""Multilayer perceptron with ReLU."""

from collections.abc import Iterator

from torch import Tensor, nn


class MLP(nn.Module):
    """``depth`` hidden layers of ``width`` ReLU units, then a linear head.

    The layers are ``layers.0`` ... ``layers.<depth - 1>`` and ``head``.
    """

    def __init__(self, *, in_features: int, width: int, depth: int, n_classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_hidden(in_features, width, depth))
        self.head = nn.Linear(width, n_classes)
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes) of inputs (B, ...), flattened to (B, in_features)."""
        x = x.flatten(1)
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)  # type: ignore[no-any-return]


def _hidden(in_features: int, width: int, depth: int) -> Iterator[nn.Linear]:
    for _ in range(depth):
        yield nn.Linear(in_features, width)
        in_features = width
