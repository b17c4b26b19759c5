"""A row of the audit, and what the rows of all files share."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

CONV_TEXT = "means 1.97 to 2.17, medians 1.93 and 2.15"
MLP_TEXT = "MLP 1.0, up-projection 0.84"
HEAD_TEXT = "2 to 4.5; 0.90 with 200 classes, 1.2 to 1.65 on CIFAR-10"

_HEADS = ("fc", "classifier.3", "output_head", "head")
_MLP_ROLES = ("mlp_up", "mlp_down")
_SUMMARIES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    ("conv", "B1", "median alpha of convolutional layers", CONV_TEXT, ()),
    ("mlp", "B2", "median alpha of a transformer's MLP layers", MLP_TEXT, _MLP_ROLES),
    ("head", "B3", "median alpha of output layers", HEAD_TEXT, ()),
)


@dataclass(frozen=True)
class AuditRow:
    """One quantity of one file, whose name the table adds."""

    quantity: str  # what it is
    claim: str = ""  # id of the claim it bears on, or empty
    layer: str = ""  # experiment and layer, or empty where the row summarises layers
    paper: str = ""  # the paper's text
    stored: float | None = None  # the author's own number
    recomputed: float | None = None  # ours, from the author's arrays
    note: str = ""  # what else to know
    judged: bool = False  # whether ours is the value by which the claim is judged
    # Else, roles of our language models' layers, whose median alpha is ours.
    roles: tuple[str, ...] = ()


def layer_type(name: str) -> str:
    """conv, attention, mlp, head or other, from a layer's name in the files."""
    if name in _HEADS:
        return "head"
    if "mlp" in name:
        return "mlp"
    if name.startswith("attn"):
        return "attention"
    return "conv" if re.match(r"conv|layer\d|features", name) else "other"


def alpha_claim(name: str) -> str:
    """The claim on alpha of a layer of this name, or empty."""
    claims = {kind: claim for kind, claim, *_ in _SUMMARIES} | {"attention": "B2"}
    return claims.get(layer_type(name), "")


def alpha_summaries(
    layers: Sequence[tuple[str, float, float | None]], *, note: str = ""
) -> list[AuditRow]:
    """Median alpha of each type of layer, of (name, stored, recomputed or None)."""
    rows = []
    for kind, claim, quantity, paper, roles in _SUMMARIES:
        chosen = [layer for layer in layers if layer_type(layer[0]) == kind]
        if not chosen:
            continue
        again = [value for _, _, value in chosen if value is not None]
        listing = ", ".join(f"{name} {stored:.2f}" for name, stored, _ in chosen)
        rows.append(
            AuditRow(
                quantity,
                claim,
                paper=paper,
                stored=median(stored for _, stored, _ in chosen),
                recomputed=median(again) if len(again) == len(chosen) else None,
                note="; ".join(filter(None, (f"{len(chosen)} layer(s): {listing}", note))),
                judged=not roles,
                roles=roles,
            )
        )
    return rows


def largest_difference(name: str, stored: Sequence[float], recomputed: Sequence[float]) -> AuditRow:
    """How far the refitted exponents are from the stored ones."""
    differences = np.abs(np.subtract(stored, recomputed))
    return AuditRow(
        f"largest |refitted - stored| {name}",
        recomputed=float(differences.max()),
        note=f"{differences.size} layers",
    )


def median(values: Iterable[float]) -> float:
    """Of at least one value."""
    return float(np.median(list(values)))


def share(truths: Iterable[bool]) -> float:
    """Share of true ones among at least one."""
    return float(np.mean(list(truths)))
