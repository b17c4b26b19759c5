"""The table ``claim_measurements`` rendered: CSV, Markdown, the report's page, README's table.

On the page every claim leads to its figures, to the tables it was measured from, to the rules that
made them, and to the code that measured it. In the report these links show what the report holds;
in a browser alone they lead to the files beside the page.
"""

import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from spectral_laws.atomic import atomic_path
from spectral_laws.claims.evaluation import EVIDENCE
from spectral_laws.claims.registry import Claim, load_claims, load_registry
from spectral_laws.claims.verdicts import VERDICTS
from spectral_laws.claims.views import GROUPS, view_claims
from spectral_laws.fitting.bootstrap import NOMINAL_CLUSTERS, coverage
from spectral_laws.palette import PAPERS, VERDICT_COLORS
from spectral_laws.tables.schemas import load_schema

_TEXTS = ("paper", "kind", "statement", "paper_value", "quantity", "accept", "direction")


def claims_csv(table: pd.DataFrame) -> str:
    """One row per measurement, beside the claim's texts and regions, four significant digits."""
    claims = pd.DataFrame(
        {"claim": claim.id} | {name: str(getattr(claim, name)) for name in _TEXTS}
        for claim in load_claims()
    )
    joined = claims.merge(table, on="claim", how="right", validate="one_to_many")
    return joined.to_csv(index=False, float_format="%.4g", lineterminator="\n")


def claims_markdown(table: pd.DataFrame) -> str:
    """Verdict counts; by paper the claims and what stands beside them; the rules, their history."""
    return _render("md", table)


def claims_page(table: pd.DataFrame, preset: str) -> str:
    """The page as HTML: verdict counts, then one table per paper.

    Args:
        table: as returned by ``evaluate_claims``.
        preset: whose claims these are; links lead to ``figures/<preset>`` and ``results/<preset>``
            beside which the page lies.
    """
    modules = {claim.id: _module(claim) for claim in load_claims()}
    return _render(
        "html",
        table,
        links={claim.id: list(_links(claim, preset)) for claim in load_claims()},
        sources={m.__name__: inspect.getsource(m) for m in modules.values()},
        colors=VERDICT_COLORS,
    )


def claims_readme(table: pd.DataFrame) -> str:
    """One row per claim and nothing else, as Markdown without a final line break."""
    return _render("readme", table).rstrip("\n")


def write_claims(
    table: pd.DataFrame, preset: str, *, csv: Path, markdown: Path, html: Path
) -> None:
    """Write all three, each complete or not at all."""
    page = claims_page(table, preset)
    texts = {csv: claims_csv(table), markdown: claims_markdown(table), html: page}
    for path, text in texts.items():
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _render(name: str, table: pd.DataFrame, **more: object) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=name == "html",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment.get_template(f"render.{name}.j2").render(
        views=view_claims(table),
        papers=PAPERS,
        groups=GROUPS,
        verdicts=VERDICTS,
        history=load_registry().history,
        coverage={n: coverage(n) for n in range(3, NOMINAL_CLUSTERS)},
        **more,
    )


def _links(claim: Claim, preset: str) -> Iterator[tuple[str, str, str, str]]:
    """What a claim leads to: kind of view, its name in the report, file, text."""
    for name in claim.figures:
        path = f"figures/{preset}/{name}.png"
        yield "figure", path, f"../../{path}", f"figure {name}"
    for name in claim.tables:
        path = f"results/{preset}/{name}.parquet"
        yield "table", path, f"{name}.parquet", f"table {name.split('/')[1]}"
    rules = {load_schema(name).rule: name.split("/")[0] for name in claim.tables}
    for rule, room in {**rules, "evaluate_claims": "claims"}.items():
        yield "rule", rule, f"../../workflow/rules/{room}.smk", f"rule {rule}"
    module = _module(claim).__name__
    yield "code", module, f"../../src/{module.replace('.', '/')}.py", "code that measures it"


def _module(claim: Claim) -> ModuleType:
    """Where the function stands that measures a claim."""
    measure = EVIDENCE[claim.id].primary
    while isinstance(measure, functools.partial):
        measure = measure.func
    module = inspect.getmodule(measure)
    assert module is not None  # every measure is a function of a module
    return module
