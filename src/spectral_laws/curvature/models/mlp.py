"""Multilayer perceptron with ReLU."""

from torch import Tensor, nn

from spectral_laws.curvature.models.blocks import layer_norm


class MLP(nn.Module):
    """``depth`` hidden layers of ``width`` ReLU units, then a linear head.

    The layers are ``layers.0`` ... ``layers.<depth - 1>`` and ``head``. With ``normalisation``
    ``layer`` a LayerNorm (``norms.<i>``) stands before every ReLU.
    """

    def __init__(
        self,
        *,
        in_features: int,
        width: int,
        depth: int,
        n_classes: int,
        normalisation: str = "none",
    ) -> None:
        super().__init__()
        sizes = [in_features, *[width] * depth]
        self.layers = nn.ModuleList(nn.Linear(size, width) for size in sizes[:-1])
        self.norms = nn.ModuleList(layer_norm(width, normalisation) for _ in range(depth))
        self.head = nn.Linear(width, n_classes)
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, n_classes) of inputs (B, ...), flattened to (B, in_features)."""
        x = x.flatten(1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(layer(x)).relu()
        logits: Tensor = self.head(x)
        return logits
