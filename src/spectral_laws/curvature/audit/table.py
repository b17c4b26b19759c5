"""The audit: what the paper says, what the author's raw files give, and what we find."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spectral_laws.curvature.audit.ablations import hypothesis_rows
from spectral_laws.curvature.audit.dimension import dimension_rows
from spectral_laws.curvature.audit.files import (
    DIMENSION,
    GAP,
    HYPOTHESIS,
    RANK_MODELS,
    TRIANGLE,
    ReferenceFiles,
    read_reference,
)
from spectral_laws.curvature.audit.gap import gap_rows
from spectral_laws.curvature.audit.rows import AuditRow
from spectral_laws.curvature.audit.triangle import rank_model_rows, triangle_rows
from spectral_laws.curvature.fits.layer_tables import require_columns
from spectral_laws.errors import DataError, NoFitError
from spectral_laws.fitting.bootstrap import cluster_bootstrap_interval
from spectral_laws.rng import generator
from spectral_laws.settings.roles import MAIN
from spectral_laws.tables.schemas import load_schema

_COLUMNS = ("claim", "quantity", "layer", "paper", "stored", "recomputed", "ours", "file", "note")
_CLAIMS = ("claim", "role", "value", "low", "high")

Ours = tuple[float | None, float | None, float | None]
_NOTHING: Ours = (None, None, None)


@dataclass(frozen=True)
class OurTables:
    """What this project found, to stand in the last column; each may be absent."""

    claims: pd.DataFrame | None  # table of ``evaluate_claims``
    experiments: pd.DataFrame | None  # table of ``tabulate_experiments``
    confidence: float  # of intervals of medians over layers
    resamples: int  # bootstrap resamples, of whole trainings
    seed: int  # root seed of the resampling

    def of(self, row: AuditRow) -> Ours:
        """Our value and interval for a row of the audit."""
        if row.judged:
            return self._claim(row.claim)
        return self._language_alpha(row.roles) if row.roles else _NOTHING

    def _claim(self, claim: str) -> Ours:
        if self.claims is None:
            return _NOTHING
        require_columns(self.claims, _CLAIMS, name="claims")
        found = self.claims[(self.claims["claim"] == claim) & (self.claims["role"] == "primary")]
        if found.empty:
            return _NOTHING
        values = found.iloc[0][["value", "low", "high"]].astype("float64")
        value, low, high = (None if np.isnan(x) else float(x) for x in values)
        return value, low, high

    def _language_alpha(self, roles: Sequence[str]) -> Ours:
        """Median alpha of these roles' layers in the language model that B2 is judged by."""
        if self.experiments is None:
            return _NOTHING
        table = self.experiments
        key = ("model", "seed", "layer")
        wanted = ("experiment", "variant", "final", "status", "role", "alpha", *key)
        require_columns(table, wanted, name="experiments")
        rows = table[
            (table["experiment"] == MAIN)
            & (table["variant"] == "gpt2")
            & table["final"].astype(bool)
            & (table["status"] == "fit")
            & table["role"].isin(list(roles))
        ].drop_duplicates([*key])
        if rows.empty:
            return _NOTHING
        alphas = rows["alpha"].to_numpy(np.float64)
        try:
            interval = cluster_bootstrap_interval(
                rows["model"] + "/" + rows["seed"].astype(str),
                lambda index: float(np.median(alphas[index])),
                confidence=self.confidence,
                resamples=self.resamples,
                generator=generator(self.seed, "audit", *roles),
                strata=rows["model"],
            )
        except NoFitError:  # too few trainings for an interval; the value stands without one
            return float(np.median(alphas)), None, None
        return float(np.median(alphas)), interval.low, interval.high


def audit_reference(folder: Path, ours: OurTables) -> pd.DataFrame:
    """Recompute every claim that the author's result files allow, beside our own values.

    One row per quantity; ``layer`` is empty where it summarises layers. A file that is not there
    has one row that says so.

    Source: curvature paper; issues with its files are listed under the curvature ladder.
    """
    records = []
    for source, row in _file_rows(read_reference(folder)):
        value, low, high = ours.of(row)
        records.append(
            {
                "quantity": row.quantity,
                "claim": row.claim,
                "source": source,
                "layer": row.layer,
                "paper_text": row.paper,
                "author_value": row.stored,
                "author_recomputed": row.recomputed,
                "our_value": value,
                "our_low": low,
                "our_high": high,
                "note": row.note,
            }
        )
    return load_schema("curvature/audit").frame(records)


def audit_markdown(table: pd.DataFrame) -> str:
    """The audit as Markdown: first claims, then layers."""
    lines = [
        "# Audit of the author's result files (arXiv:2606.02596)",
        "",
        "*Stored* is the number in the author's file, *recomputed* what its raw arrays give, "
        "*ours* what this project measures on its own networks, with its interval: of a claim the "
        "value it is judged by (see the claims table), in B2 the median alpha of the same layers "
        "of language models. A dash: not stored, not to be recomputed from what is stored, or not "
        "measured.",
    ]
    summary = table["layer"] == ""
    for title, rows in (("Claims", table[summary]), ("Layer by layer", table[~summary])):
        lines += ["", f"## {title}", ""]
        lines += [f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
        ordered = rows.sort_values("claim", key=_claim_numbers, kind="stable")
        lines += [_line(row) for row in ordered.to_dict("records")]
    return "\n".join(lines) + "\n"


def _file_rows(files: ReferenceFiles) -> Iterator[tuple[str, AuditRow]]:
    """Name and rows of every file that is there, and one row for each that is not."""
    makers: dict[str, Callable[[Any], list[AuditRow]]] = {
        TRIANGLE: triangle_rows,
        GAP: gap_rows,
        HYPOTHESIS: hypothesis_rows,
        DIMENSION: dimension_rows,
        RANK_MODELS: lambda content: rank_model_rows(content, files.triangle),
    }
    for name, content in files.contents.items():
        if content is None:
            yield name, AuditRow("file", note="not in the folder")
            continue
        try:
            yield from ((name, row) for row in makers[name](content))
        except NoFitError as error:
            raise DataError(f"{name}: {error}") from None


def _claim_numbers(claims: "pd.Series[str]") -> "pd.Series[int]":
    """To sort by: the claim's number, rows without a claim last."""
    return claims.map(lambda claim: int(claim[1:]) if claim else 1000)


def _line(row: dict[Any, Any]) -> str:
    ours = _number(row["our_value"])
    if not pd.isna(row["our_low"]):
        ours += f" [{_number(row['our_low'])}, {_number(row['our_high'])}]"
    cells = [row["claim"], row["quantity"], row["layer"], row["paper_text"]]
    cells += [_number(row["author_value"]), _number(row["author_recomputed"]), ours]
    cells += [row["source"], row["note"]]
    return "| " + " | ".join(str(cell).replace("|", "\\|") or "-" for cell in cells) + " |"


def _number(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.3g}"
