"""Audit of the file on ablations: transformers by task and by number of classes."""

from collections.abc import Sequence

from spectral_laws.curvature.audit.files import Hypothesis, HypothesisLayer
from spectral_laws.curvature.audit.rows import (
    HEAD_TEXT,
    MLP_TEXT,
    AuditRow,
    alpha_claim,
    largest_difference,
    layer_type,
    median,
)
from spectral_laws.fitting.loglog import fit_loglog
from spectral_laws.settings.roles import ATTENTION

Alphas = dict[str, tuple[float, float]]
"""Stored and refitted alpha by layer."""

LANGUAGE_MODEL = "GPT2_LM"
_LANGUAGE = (
    ("attention", ("attn_qkv", "attn_proj"), "1.3", ATTENTION),
    ("up-projection", ("mlp_up",), "0.84", ("mlp_up",)),
    ("down-projection", ("mlp_down",), "1.0 (MLP)", ("mlp_down",)),
)
_DIFFERENCES = (
    ("GPT2_Classification", LANGUAGE_MODEL, "0.7 to 0.9 higher", True),
    ("CIFAR-100", "CIFAR-10", "-0.5 (ViT)", False),
)


def hypothesis_rows(hypothesis: Hypothesis) -> list[AuditRow]:
    """B2, B3, B18: alpha of transformer layers by task and by number of classes."""
    sections = {**hypothesis.output_dim, **hypothesis.task_structure}
    variants = {variant: _alphas(layers) for variant, layers in sections.items()}
    rows = _language_rows(variants.get(LANGUAGE_MODEL, {}))
    rows += _head_rows(variants)
    for more, less, paper, judged in _DIFFERENCES:
        if more in variants and less in variants:
            rows.append(_difference_row(more, less, variants, paper, judged=judged))
    pairs = [pair for layers in variants.values() for pair in layers.values()]
    if pairs:
        stored, refitted = zip(*pairs, strict=True)
        rows.append(largest_difference("alpha", stored, refitted))
    return rows + [
        AuditRow(
            "alpha",
            alpha_claim(name) if layer_type(name) == "head" or variant == LANGUAGE_MODEL else "B18",
            layer=f"{variant} {name}",
            stored=old,
            recomputed=new,
        )
        for variant, layers in variants.items()
        for name, (old, new) in layers.items()
    ]


def _alphas(layers: Sequence[HypothesisLayer]) -> Alphas:
    refits = [fit_loglog(x.array("sigma"), x.array("h_exact")).slope for x in layers]
    return {x.name: (x.alpha, refit) for x, refit in zip(layers, refits, strict=True)}


def _language_rows(layers: Alphas) -> list[AuditRow]:
    """B2: all layers of the language model's blocks, then part by part."""
    if not layers:
        return []

    def row(what: str, names: Sequence[str], paper: str, roles: tuple[str, ...]) -> AuditRow:
        return AuditRow(
            f"median alpha of a language model's {what} layers",
            "B2",
            paper=paper,
            stored=median(layers[name][0] for name in names),
            recomputed=median(layers[name][1] for name in names),
            judged=not roles,
            roles=roles,
        )

    everything = row("attention and MLP", [*layers], f"attention 1.3, {MLP_TEXT}", ())
    parts = [
        row(what, names, paper, roles)
        for what, names, paper, roles in _LANGUAGE
        if all(name in layers for name in names)
    ]
    return [everything, *parts]


def _head_rows(variants: dict[str, Alphas]) -> list[AuditRow]:
    heads = {
        variant: pair
        for variant, layers in variants.items()
        for name, pair in layers.items()
        if layer_type(name) == "head"
    }
    if not heads:
        return []
    return [
        AuditRow(
            "median alpha of output layers",
            "B3",
            paper=HEAD_TEXT,
            stored=median(old for old, _ in heads.values()),
            recomputed=median(new for _, new in heads.values()),
            note=", ".join(f"{variant} {new:.2f}" for variant, (_, new) in heads.items()),
            judged=True,
        )
    ]


def _difference_row(
    more: str, less: str, variants: dict[str, Alphas], paper: str, *, judged: bool
) -> AuditRow:
    """B18: how much higher the median alpha of one variant is."""
    above, below = variants[more], variants[less]
    each = ", ".join(
        f"{name} {above[name][1] - below[name][1]:+.2f}" for name in above if name in below
    )
    return AuditRow(
        f"median alpha, {more} minus {less}",
        "B18",
        paper=paper,
        stored=median(a for a, _ in above.values()) - median(b for b, _ in below.values()),
        recomputed=median(a for _, a in above.values()) - median(b for _, b in below.values()),
        note=f"layer by layer {each}",
        judged=judged,
    )
