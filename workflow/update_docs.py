"""Bring README's claims table and docs/gallery, pictures and captions, up to date from a run.

python workflow/update_docs.py laptop
"""

from pathlib import Path
from typing import Annotated

import typer
import yaml
from docutils.core import publish_parts
from jinja2 import Template
from PIL import Image

from spectral_laws.artifacts import read_table
from spectral_laws.atomic import atomic_path
from spectral_laws.claims.report import claims_table
from spectral_laws.cli import run

WIDTH = 900  # pixels of a picture
BEGIN, END = "<!-- claims: make docs -->", "<!-- end of claims -->"


def main(preset: Annotated[str, typer.Argument(help="Name of the preset.")] = "laptop") -> None:
    """Write the claims table into README.md, and docs/gallery.md with a picture of each figure."""
    table = claims_table(read_table(Path("results", preset, "claims.parquet")))
    readme = Path("README.md")
    replace_between(readme, BEGIN, END, table)
    figures = sorted(Path("figures", preset).glob("*.png"))
    page = [f"# Gallery\n\nThe figures of the preset {preset}, with the captions of its report.\n"]
    for figure in figures:
        shrink(figure, Path("docs", "gallery", figure.name))
        name = figure.stem
        page.append(f"## {name}\n\n![{name}](gallery/{name}.png)\n\n{caption(name, preset)}\n")
    with atomic_path(Path("docs", "gallery.md")) as temporary:
        temporary.write_text("\n".join(page), encoding="utf-8")
    print(f"README.md: {table.count(chr(10)) - 1} claims; docs/gallery: {len(figures)} pictures")


def replace_between(path: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a file."""
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError(f"{path}: no {begin} ... {end}")
    with atomic_path(path) as temporary:
        temporary.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def caption(name: str, preset: str) -> str:
    """A figure's caption as HTML, which Markdown lets through."""
    source = Path("workflow", "report", f"{name}.rst").read_text(encoding="utf-8")
    config = yaml.safe_load(Path("results", preset, "config.yaml").read_text(encoding="utf-8"))
    text = Template(source).render(snakemake={"wildcards": {"preset": preset}, "config": config})
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
    run(main)
