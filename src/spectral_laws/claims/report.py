"""The claims table on disk: Parquet and CSV for programs, Markdown for people."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from spectral_laws.artifacts import write_table
from spectral_laws.atomic import atomic_path
from spectral_laws.claims.verdicts import VERDICTS, value_text
from spectral_laws.provenance import Provenance

PAPERS = {
    "recovery": "Sequential feature recovery (arXiv:2605.14567)",
    "curvature": "Loss curvature (arXiv:2606.02596)",
}
_HEADER = "| claim | statement | paper | ours | verdict | beside |"
_BESIDE = {
    "recovery": (
        "The laws of this paper are statements about the limit of large d. They are judged in the "
        "Gaussian-equivalent model (features F replaced by independent normal variables, "
        "simulated exactly in law); *what each value rests on* names the studies, some with more "
        "directions than the paper's d^eps. *Beside* stands the same quantity elsewhere, most of "
        "all for true Hermite features at the dimensions that fit this preset, with the verdict "
        "it would have. Outliers that a single large label makes are counted (n_spurious in the "
        "metrics table)."
    ),
    "curvature": (
        "Curvatures are directional: h_k = d^2 L / dt^2 along one singular direction of the "
        "gradient, not an eigenvalue of the Hessian. Claims without an ablation are judged on the "
        "trained networks of the experiment `architectures`, those on optimizers on the races; "
        "*beside* stands the same quantity for other layers, networks, optimizers or definitions, "
        "with the verdict it would have. For a control, such as permuted curvatures, a verdict as "
        "good as the claim's own is evidence against the claim."
    ),
}


def claims_csv(table: pd.DataFrame) -> str:
    """The table as CSV, numbers with four significant digits."""
    return table.to_csv(index=False, float_format="%.4g", lineterminator="\n")


def claims_markdown(table: pd.DataFrame) -> str:
    """The table as Markdown: verdict counts, one section per paper, then the rules.

    In each section first one row per claim, then what each value rests on.

    Args:
        table: as returned by ``evaluate_claims``.
    """
    lines = ["# Claims", ""]
    lines += _counts(table)
    for paper, title in PAPERS.items():
        rows = table[table["paper"] == paper]
        lines += ["", f"## {title}", ""]
        if (rows["beside"] != "").any():
            lines += [_BESIDE[paper], ""]
        lines += [_HEADER, "| --- | --- | --- | --- | --- | --- |"]
        lines += [_row(row) for row in rows.to_dict("records")]
        lines += ["", "What each value rests on:", ""]
        lines += [f"- {row['id']}: {row['reason']}" for row in rows.to_dict("records")]
    lines += ["", "## How each claim is judged", ""]
    lines += [
        "Reproduced: our value lies in *accept* and the whole interval in *direction*. Direction "
        "reproduced: value and interval lie in *direction*, the value not in *accept*. These "
        "regions were fixed before any value was measured; quantities and studies were made "
        "precise later, as the history of registry.yaml shows. Intervals resample whole teachers "
        "or trainings, and seeds where two networks are compared; identities have none. With "
        "fewer than about ten of them an interval is too narrow: one of three holds the truth in "
        "at most 3 of 4 cases. The smoke preset is too small to judge a claim.",
        "",
        "| claim | quantity | accept | direction | why |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        _cells(row["id"], row["quantity"], row["accept"], row["direction"], row["rule"])
        for row in table.to_dict("records")
    ]
    return "\n".join(lines) + "\n"


def claims_table(table: pd.DataFrame) -> str:
    """One row per claim and nothing else, as Markdown without a final line break."""
    lines = [
        "| claim | the paper says | paper | ours | verdict |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        _cells(row["id"], row["statement"], row["paper_value"], ours(row), row["verdict"])
        for row in table.to_dict("records")
    ]
    return "\n".join(lines)


def write_claims(
    table: pd.DataFrame, *, parquet: Path, csv: Path, markdown: Path, provenance: Provenance
) -> None:
    """Write the table, with provenance, and both texts, each complete or not at all."""
    write_table(table, parquet, provenance, "claims/claims")
    for path, text in ((csv, claims_csv(table)), (markdown, claims_markdown(table))):
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _counts(table: pd.DataFrame) -> list[str]:
    counts = table.groupby("verdict")["paper"].value_counts()
    lines = [f"| verdict | {' | '.join(PAPERS)} | all |", "| --- | --- | --- | --- |"]
    for verdict in VERDICTS:
        numbers = [int(counts.get((verdict, paper), 0)) for paper in PAPERS]
        lines.append(_cells(verdict, *numbers, sum(numbers)))
    return lines


def _row(row: dict[Hashable, Any]) -> str:
    return _cells(
        row["id"], row["statement"], row["paper_value"], ours(row), row["verdict"], row["beside"]
    )


def ours(row: dict[Hashable, Any]) -> str:
    """Our value with its interval, or a dash."""
    if pd.isna(row["our_value"]):
        return "-"
    if pd.isna(row["ci_low"]):
        return value_text(row["our_value"], None, None)
    return value_text(row["our_value"], row["ci_low"], row["ci_high"])


def _cells(*texts: object) -> str:
    return "| " + " | ".join(str(text).replace("|", "\\|") for text in texts) + " |"
