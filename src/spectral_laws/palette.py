"""Colours, markers and names of what figures and pages tell apart: alike wherever they occur."""

from spectral_laws.settings.roles import GROUPS

_BLUE, _ORANGE, _GREEN, _RED, _PINK, _BROWN, _ROSE, _GREY, _YELLOW, _SKY = (
    "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#fbafe4", "#949494",
    "#ece133", "#56b4e9",
)  # fmt: skip
"""Safe for the colour-blind (seaborn's palette of that name)."""

MEASURED = _BLUE
OUTLIER = _RED
THEORY = "0.1"
FAINT = "0.55"
PART_COLORS = {
    "recovery": _BLUE, "curvature": _ORANGE, "optimizers": _GREEN, "claims": "#5f5f5f",
}  # fmt: skip
"""Of the parts of the pipeline, which are named after their rule files."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

PAPERS = {
    "recovery": "Sequential feature recovery (arXiv:2605.14567)",
    "curvature": "Spectra of loss landscapes (arXiv:2606.02596)",
}
VERDICTS = {
    "reproduced": ("#0b5f8a", "o"),
    "direction reproduced": ("#8a5800", "^"),
    "not reproduced": ("#a50f15", "X"),
    "inconclusive": ("#6a3d9a", "D"),
    "uninformative": ("#00695c", "s"),
    "ill-posed": ("#1a1a1a", "*"),
    "not run at this scale": ("#6b6b6b", "_"),
}
"""Colour and marker; white text is read on all."""
VERDICT_COLORS = {verdict: color for verdict, (color, _) in VERDICTS.items()}
VERDICT_MARKERS = {verdict: marker for verdict, (_, marker) in VERDICTS.items()}

FEATURES = {"hermite": "true features", "equivalent": "Gaussian equivalent"}
DEGREE_COLORS = {1: _BLUE, 2: _RED}
READOUT_COLORS = {"identity": _BLUE, "tanh": _ORANGE, "relu": _GREEN}
LAYER_NAMES = {
    "tail": "tail sum",
    "independent": "independent sample",
    "outliers": "outliers only",
    "same_sample": "same sample",
}
"""How the second layer is fitted, and the paper's formula."""
LAYER_COLORS = {"tail": _GREY, "independent": _BLUE, "outliers": _GREEN, "same_sample": _RED}
METHOD_NAMES = {
    "spectral": "spectral method",
    "polynomial": "polynomial kernel",
    "arc_cosine": "arc-cosine kernel",
    "rbf": "RBF kernel",
    "random_features": "random features",
    "network": "network, AdamW",
}
METHOD_COLORS = dict(zip(METHOD_NAMES, (_BLUE, _RED, _ORANGE, _PINK, _GREEN, _BROWN), strict=True))

KIND_COLORS = {"conv": _BLUE, "linear": _ORANGE, "head": _PINK}
GROUP_COLORS = {
    "convolution": _BLUE,
    "attention": _GREEN,
    "MLP block": _RED,
    "linear": _ORANGE,
    "head": _PINK,
}
"""Families of roles: as the kinds, with transformers' apart."""
ROLE_NAMES = {
    "conv": "conv",
    "pointwise_conv": "1-by-1\nconv",
    "depthwise_conv": "depth-\nwise",
    "attention_qkv": "Q, K, V",
    "attention_output": "attn.\noutput",
    "mlp_up": "MLP\nup",
    "mlp_down": "MLP\ndown",
    "linear": "linear",
    "patch_embedding": "patches",
    "head": "head",
}
"""Roles in the order they are drawn, with short names."""
ROLE_GROUPS = {role: group for group, roles in GROUPS.items() for role in roles}
LAWS = {
    "lognormal": ("log-normal", _SKY, "o"),
    "power_law": ("power law", _BROWN, "s"),
    "exponential": ("exponential", "0.25", "^"),
}
"""Laws in rank of singular values: name, colour, marker; the colours are no family's."""

_ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
OPTIMIZERS = {
    "sgd": ("SGD, momentum", "0.55"),
    "adamw": ("AdamW", "0.1"),
    "muon": ("Muon", _GREEN),
    "soap": ("SOAP", _ORANGE),
    "spectral_newton_1": (f"Spectral Newton, {_ALPHA} = 1", _SKY),
    "spectral_newton_2": (f"Spectral Newton, {_ALPHA} = 2", _BLUE),
    "spectral_newton_measured": (f"Spectral Newton, measured {_ALPHA}", _RED),
    "sgd_by_damping": ("SGD, rate / damping", _BROWN),
}
"""Name and colour: baselines in their own, Spectral Newton in blues and red."""
OTHER_OPTIMIZERS = (_PINK, "#a50f15", "#4b2991", _ROSE)
"""Colours of methods with other names."""
