"""Files that belong together pass; every way in which they do not is named."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from safetensors.numpy import save_file

from spectral_laws.artifacts import read_arrays, read_table, write_arrays, write_table
from spectral_laws.errors import DataError
from spectral_laws.plotting.style import save_figure
from spectral_laws.provenance import Provenance, forget_inputs
from spectral_laws.verification import (
    collect_provenance,
    compare_runs,
    find_contradictions,
    find_excesses,
    find_misfits,
    read_chain,
    read_jobs,
    read_record,
)

DATA = Path("results/tiny/data.safetensors")
TABLE = Path("results/tiny/sums.parquet")
TIMES = Path("results/tiny/sums_times.parquet")
PDF, PNG = Path("figures/tiny/sums.pdf"), Path("figures/tiny/sums.png")
TIMED_PDF, TIMED_PNG = Path("figures/tiny/speed.pdf"), Path("figures/tiny/speed.png")


def draw(tables: list[Path], pdf: Path, png: Path, **parameters) -> None:
    """A figure of the first column of tables, as a job of its own."""
    forget_inputs()
    figure = Figure(figsize=(2, 2))
    axes = figure.subplots()
    axes.plot(range(2))
    for path in tables:
        axes.plot(read_table(path).iloc[:, 0])
    save_figure(figure, pdf, png, figure=pdf.stem, **parameters)


def run_pipeline(*, scale: float = 1.0, seconds: float = 1.0) -> None:
    """Data -> table (and its seconds) -> figures, each as a job of its own."""
    forget_inputs()
    write_arrays({"x": scale * np.arange(5.0)}, DATA, Provenance({"scale": scale}, 1))
    forget_inputs()
    x = read_arrays(DATA)["x"]
    write_table(pd.DataFrame({"sum": x.cumsum()}), TABLE, Provenance({}))
    write_table(pd.DataFrame({"seconds": seconds * x, "step": range(5)}), TIMES, Provenance({}))
    draw([TABLE], PDF, PNG, title="a (b) \\ c")
    draw([TABLE, TIMES], TIMED_PDF, TIMED_PNG)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run in a folder of its own."""
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.chdir(folder)
    run_pipeline()
    return folder


def contradictions() -> list[str]:
    return list(find_contradictions(read_chain([PDF, PNG, TIMED_PDF, TIMED_PNG])))


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_a_table_that_does_not_fit_its_schema_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"race": ["a"], "method": ["sgd"], "seed": 0, "epoch": 1, "seconds": 0.5})
    path = Path("results/tiny/optimizers/race_times.parquet")
    collected = {"files": {str(path): {}, "results/tiny/sums.parquet": {}}}
    write_table(table, path, Provenance({}))
    assert list(find_misfits(collected)) == []
    write_table(table.drop(columns="epoch"), path, Provenance({}))
    assert list(find_misfits(collected)) == [
        f"{path}: optimizers/race_times table: no column epoch"
    ]


def test_a_sound_run_has_no_contradiction_and_its_chain_reaches_the_data(run):
    assert list(read_chain([PDF]).records) == [PDF, DATA, TABLE]
    assert contradictions() == []


def test_pdf_and_png_hold_the_same_record_with_the_parameters(run):
    records = [read_record(PDF), read_record(PNG)]
    assert records[0].pop("content") != records[1].pop("content")
    assert records[0] == records[1]
    assert records[0]["parameters"] == {"figure": "sums", "title": "a (b) \\ c"}
    assert set(records[0]["inputs"]) == {TABLE.as_posix()}
    assert {"matplotlib", "numpy", "python"} <= set(records[0]["versions"])


def test_readers_of_pdf_and_png_are_not_disturbed_by_the_record(run):
    with Image.open(PNG) as image:
        image.load()
        assert json.loads(image.text["spectral_laws"])["spectral_laws_sha256"]
        assert image.size == (600, 600)
    lines = PDF.read_bytes().splitlines()
    assert lines[-1] == b"%%EOF"
    assert lines[-3] == b"startxref"
    assert PDF.read_bytes()[int(lines[-2]) :].startswith(b"xref")


def test_painted_swapped_and_lonely_figures_are_found(run):
    png, pdf = PNG.read_bytes(), PDF.read_bytes()
    with Image.open(PNG) as image:
        text = PngInfo()
        text.add_text("spectral_laws", image.text["spectral_laws"])
        image.convert("L").save(PNG, pnginfo=text)
    assert contradictions() == [f"{PNG}: damaged or edited, it is not what was drawn"]
    PNG.write_bytes(png)
    PDF.write_bytes(flipped(pdf, len(pdf) // 2))
    assert contradictions() == [f"{PDF}: damaged or edited, it is not what was drawn"]
    PDF.write_bytes(TIMED_PDF.read_bytes())
    PNG.write_bytes(TIMED_PNG.read_bytes())
    assert contradictions() == [f"{path}: was drawn as speed" for path in (PDF, PNG)]
    PDF.write_bytes(pdf)
    PNG.write_bytes(png)
    PNG.unlink()
    assert list(find_contradictions(read_chain([PDF]))) == [f"{PDF}: has no sums.png beside it"]
    draw([], PDF, PNG)
    assert contradictions() == [f"{path}: was drawn from no table" for path in (PDF, PNG)]


def test_weights_from_elsewhere_are_read_but_not_asked_who_made_them(run):
    weights, table = Path("data/given.safetensors"), Path("results/tiny/of_given.parquet")
    weights.parent.mkdir()
    save_file({"w": np.ones(3)}, weights)
    forget_inputs()
    write_table(pd.DataFrame({"w": read_arrays(weights)["w"]}), table, Provenance({}))
    assert read_chain([table]).records[weights] is None
    assert list(find_contradictions(read_chain([table]))) == []
    save_file({"w": np.zeros(3)}, weights)
    assert list(find_contradictions(read_chain([table]))) == [
        f"{table}: was made from another {weights} than the one on disk"
    ]


def test_figures_of_other_tables_are_found(run):
    forget_inputs()
    write_table(pd.DataFrame({"sum": np.zeros(5)}), TABLE, Provenance({}))
    found = contradictions()
    for path in (PDF, PNG, TIMED_PDF, TIMED_PNG):
        assert f"{path}: was made from another {TABLE} than the one on disk" in found
    assert len(found) == 4


def test_a_table_of_other_data_is_found(run):
    write_arrays({"x": np.ones(5)}, DATA, Provenance({}))
    assert contradictions() == [
        f"{table}: was made from another {DATA} than the one on disk" for table in (TABLE, TIMES)
    ]


@pytest.mark.slow
def test_one_changed_bit_is_found_or_harmless(run):
    table, found = read_table(TABLE), 0
    whole = TABLE.read_bytes()
    for place in range(0, len(whole), 3):
        TABLE.write_bytes(flipped(whole, place))
        try:
            pd.testing.assert_frame_equal(read_table(TABLE), table)
        except DataError as error:
            found += str(TABLE) in str(error)
    assert found > len(whole) // 9
    TABLE.write_bytes(whole)
    whole = DATA.read_bytes()
    place = whole.find(np.float64(3.0).tobytes())
    DATA.write_bytes(flipped(whole, place))
    assert contradictions()[0].startswith(f"{DATA}: damaged, its content is not what was written")


def test_pdf_and_png_of_different_runs_are_found(run):
    keep = PNG.read_bytes()
    draw([TABLE], PDF, PNG, title="other")
    PNG.write_bytes(keep)
    assert contradictions() == [f"{PDF}: drawn in another run than its PNG"]


@pytest.mark.parametrize("path", [PDF, PNG])
def test_figures_without_or_with_a_damaged_record_are_refused_by_name(run, path):
    content = path.read_bytes()
    for changed in (content[:100], content.replace(b"spectral_laws", b"spectral_paws"), b""):
        path.write_bytes(changed)
        with pytest.raises(DataError, match=path.name):
            read_record(path)
    path.unlink()
    assert read_chain([path]).problems == [f"{path}: no such figure"]
    with pytest.raises(DataError, match=f"{path}: no such"):
        collect_provenance([path], Path("results/tiny/benchmarks"), Path("logs/tiny"))


def benchmark(name: str, *, memory: float, load: float, extended: bool = True) -> None:
    path = Path("results/tiny/benchmarks", f"{name}.tsv")
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"s": 12.5, "max_rss": memory, "mean_load": load}
    if extended:
        row |= {"rule_name": name, "threads": 2, "resources": "{'mem_mb': 1000, 'gpu': 0}"}
    pd.DataFrame([row]).to_csv(path, sep="\t", index=False)
    if extended:
        log("tiny", name, "a warning\nprocessor seconds: 12.00, to start 2.50\n")


def log(preset: str, name: str, text: str) -> None:
    path = Path("logs", preset, f"{name}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_jobs_beyond_their_declared_limits_are_found(run):
    benchmark("modest", memory=999, load=210)
    benchmark("greedy", memory=1001, load=20)
    benchmark("busy", memory=10, load=390)
    benchmark("unknown", memory=5000, load=900, extended=False)
    benchmark("short", memory=float("nan"), load=0)
    jobs = read_jobs(Path("results/tiny/benchmarks"), Path("logs/tiny"))
    assert len(jobs) == 5
    assert jobs["modest"]["seconds"] == 12.5
    assert jobs["modest"]["processor_seconds"] == 12
    assert jobs["modest"]["start_seconds"] == 2.5
    assert jobs["unknown"]["processor_seconds"] is None
    files = {
        "a.parquet": {"script": "modest.py", "peak_memory_mb": 1000},
        "b.parquet": {"script": "short.py", "peak_memory_mb": 1001},
        "c.parquet": {"script": "by_hand.py", "peak_memory_mb": 9999},
        "c.csv": {},
    }
    assert list(find_excesses({"jobs": jobs, "files": files})) == [
        "busy: kept 3.9 cores busy, its rule declares 2",
        "greedy: used 1001 MB of memory, its rule declares 1000",
        "unknown: no declared limits; run with benchmark-extended, as the profiles do",
        "b.parquet: its job used 1001 MB of memory, short declares 1000",
    ]
    Path("results/tiny/benchmarks/modest.tsv").write_text("s\n")
    with pytest.raises(DataError, match=r"modest\.tsv: not a benchmark file"):
        read_jobs(Path("results/tiny/benchmarks"), Path("logs/tiny"))


def verify(root) -> subprocess.CompletedProcess:
    command = [sys.executable, str(root / "workflow" / "verify.py"), "tiny"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def record_run(*files: Path) -> None:
    collected = collect_provenance(files, Path("results/tiny/benchmarks"), Path("logs/tiny"))
    Path("results/tiny/provenance.json").write_text(json.dumps(collected))


@pytest.mark.slow
def test_the_command_passes_a_sound_run_and_fails_a_changed_one(run, root):
    assert "finish a run first" in verify(root).stderr
    benchmark("modest", memory=999, load=210)
    files = [TABLE, PDF, PNG, TIMED_PDF, TIMED_PNG]
    record_run(*files)
    log("tiny", "snakemake", "processor seconds: 1.50\nprocessor seconds: 1.50\n")
    collected = json.loads(Path("results/tiny/provenance.json").read_text())
    assert set(collected["files"]) == {str(path) for path in [*files, DATA, TIMES]}
    assert collected["files"][str(TABLE)]["inputs"] == collected["files"][str(TIMES)]["inputs"]
    done = verify(root)
    assert done.returncode == 0, done.stderr
    assert "all sound" in done.stdout
    assert "999.0 of 1000 MB (modest)" in done.stdout
    assert "0.2 minutes, 36.7% of it overhead: starting 1 of 1 jobs 2 s, Snakemake itself 3 s" in (
        done.stdout
    )
    # All that can be wrong at once, each named; the record was made anew, as Snakemake would.
    benchmark("greedy", memory=1001, load=20)
    shutil.copy(PNG, "figures/tiny/stray.png")
    forget_inputs()
    write_table(pd.DataFrame({"sum": np.zeros(5)}), TABLE, Provenance({}))
    record_run(*files)
    TIMED_PDF.write_bytes(TIMED_PDF.read_bytes() + b"x")
    done = verify(root)
    assert done.returncode == 1
    for message in (
        "greedy: used 1001 MB of memory, its rule declares 1000",
        "figures/tiny/stray.png: not of the recorded run",
        f"{PDF}: was made from another {TABLE} than the one on disk",
        f"{TIMED_PDF}: changed since the run was recorded",
        f"{TIMED_PDF}: damaged or edited",
    ):
        assert message in done.stderr
    assert "Traceback" not in done.stderr
    TIMED_PDF.unlink()
    assert f"{TIMED_PDF}: listed, but gone" in verify(root).stderr
    record_run(TABLE)
    assert "lists no figure" in verify(root).stderr


@pytest.mark.slow
def test_runs_are_equal_but_for_seconds_and_every_difference_is_named(run, monkeypatch):
    other = run.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    run_pipeline(seconds=7.0)
    result = compare_runs(run, other, "tiny")
    assert result.differences == []
    assert result.compared == 7
    assert result.timed == [str(path) for path in (TIMED_PDF, TIMED_PNG, TIMES)]
    run_pipeline(scale=2.0, seconds=7.0)
    result = compare_runs(run, other, "tiny")
    assert result.differences == [
        f"{path}: differs" for path in (TIMED_PDF, TIMED_PNG, PDF, PNG, DATA, TABLE)
    ]
    os.remove(TABLE)
    assert f"{TABLE}: only in {run}" in compare_runs(run, other, "tiny").differences
    with pytest.raises(DataError, match="no results of preset 'other'"):
        compare_runs(run, other, "other")
