"""Bring up to date what is generated: from settings, schemas of tables, and the laptop run.

python workflow/update_docs.py
"""

import json
import shutil
from pathlib import Path
from typing import Any

import yaml
from docutils.core import publish_parts
from jinja2 import Template
from PIL import Image

from spectral_laws.artifacts import read_table
from spectral_laws.atomic import atomic_path
from spectral_laws.claims.registry import load_claims
from spectral_laws.claims.render import claims_readme
from spectral_laws.cli import run
from spectral_laws.config import REMOVABLE, Config
from spectral_laws.errors import DataError
from spectral_laws.figure_registry import load_figures
from spectral_laws.tables.schemas import load_schema, table_names

RESULTS, FIGURES = Path("results/laptop"), Path("figures/laptop")
WIDTH = 900  # pixels of a picture
SCHEMA = Path("config", "config.schema.json")
TABLES = Template(
    """# Tables

What the pipeline writes, as Parquet below `results/<preset>/`. A `?` behind a type: the value may
be missing.
{% for table in tables %}
## {{ table.name }}

{{ table.meaning[0] | upper }}{{ table.meaning[1:] }}. One row: {{ table.row }}.
Rule `{{ table.rule }}`.

| column | type | unit | meaning |
| --- | --- | --- | --- |
{% for c in table.columns -%}
| {{ c.name }} | {{ c.dtype }}{{ "?" if c.nullable }} | {{ c.unit }} |
{#- #} {{ c.meaning | replace("|", "\\\\|") }} |
{% endfor -%}
{% endfor -%}
""",
    keep_trailing_newline=True,
)
BEGIN, END = "<!-- claims: make docs -->", "<!-- end of claims -->"


def main() -> None:
    """Write both schemas, README's claims and docs/claims.md, docs/gallery.md and its pictures."""
    with atomic_path(SCHEMA) as temporary:
        temporary.write_text(json.dumps(config_schema(), indent=1) + "\n", encoding="utf-8")
    with atomic_path(Path("docs", "tables.md")) as temporary:
        temporary.write_text(tables_page(), encoding="utf-8")
    table = claims_readme(read_table(RESULTS / "claim_measurements.parquet"))
    figures = {name: FIGURES / f"{name}.png" for name in load_figures()}
    figures = {name: path for name, path in figures.items() if path.exists()}
    if not figures:
        raise DataError(f"{FIGURES}: no figures; finish a run first: `make reproduce`")
    replace_between(Path("README.md"), BEGIN, END, table)
    with atomic_path(Path("docs", "claims.md")) as temporary:
        shutil.copy(RESULTS / "claims.md", temporary)
    for old in Path("docs", "gallery").glob("*.png"):
        old.unlink()
    page = ["# Gallery\n\nThe figures of the preset laptop, with the captions of its report.\n"]
    for name, path in figures.items():
        shrink(path, Path("docs", "gallery", path.name))
        title, picture = load_figures()[name].title, f"![{name}](gallery/{name}.png)"
        page.append(f'<a id="{name}"></a>\n\n## {title}\n\n{picture}\n\n{caption(name)}\n')
    with atomic_path(Path("docs", "gallery.md")) as temporary:
        temporary.write_text("\n".join(page), encoding="utf-8")
    print(f"README.md: {len(load_claims())} claims; docs/gallery: {len(figures)} pictures")


def config_schema() -> dict[str, Any]:
    """JSON schema of config.yaml and, as every key may be missing, of the files that overlay it."""
    schema = Config.model_json_schema()
    _relax(schema)
    for section, name in REMOVABLE:
        definition = schema["properties"][section]["$ref"].rsplit("/", 1)[1]
        entries = schema["$defs"][definition]["properties"][name]["patternProperties"]
        for pattern, entry in entries.items():
            entries[pattern] = {"anyOf": [entry, {"type": "null"}]}
    return schema


def _relax(node: object) -> None:
    """Let keys of a schema be missing, and an entry without its kind be of any kind."""
    if isinstance(node, list):
        for part in node:
            _relax(part)
    elif isinstance(node, dict):
        for key in ("required", "title", "discriminator"):
            node.pop(key, None)
        if "oneOf" in node:
            node["anyOf"] = node.pop("oneOf")
        if "patternProperties" in node:
            node["additionalProperties"] = False
        for part in node.values():
            _relax(part)


def tables_page() -> str:
    """Every table with its columns, as Markdown."""
    return str(TABLES.render(tables=[load_schema(name) for name in table_names()]))


def replace_between(path: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a file."""
    whole = path.read_text(encoding="utf-8")
    before, _, rest = whole.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark or whole.count(begin) > 1:
        raise DataError(f"{path}: {begin} ... {end} must stand there once")
    with atomic_path(path) as temporary:
        temporary.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def caption(name: str) -> str:
    """A figure's caption as HTML, which Markdown lets through."""
    source = Path("workflow", "report", f"{name}.rst").read_text(encoding="utf-8")
    config = yaml.safe_load((RESULTS / "config.yaml").read_text(encoding="utf-8"))
    text = Template(source).render(snakemake={"wildcards": {"preset": "laptop"}, "config": config})
    return str(publish_parts(text, writer="html")["body"]).strip()


def shrink(figure: Path, picture: Path) -> None:
    """A small copy of a figure, without its record, for the pages of the project."""
    with Image.open(figure) as image:
        size = (min(WIDTH, image.width), round(image.height * min(1, WIDTH / image.width)))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    with atomic_path(picture) as temporary:
        palette = small.quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        palette.save(temporary, optimize=True)


if __name__ == "__main__":
    run(main, job=False)
