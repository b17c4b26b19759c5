"""Whether the files of a run belong together: what each was made from, and what it cost.

Every table, array file and figure holds the digests of what it was made from
(:mod:`spectral_laws.provenance`). Followed from the figures back to the data, they tell a figure
that was drawn from the tables on disk from one that was not.
"""

import ast
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from spectral_laws.artifacts import read_arrays, read_provenance, read_table
from spectral_laws.errors import DataError
from spectral_laws.figure_records import read_figure_record
from spectral_laws.provenance import arrays_digest, table_digest
from spectral_laws.tables.schemas import load_schema, table_names

Record = dict[str, Any]

_PROCESSOR = re.compile(r"^processor seconds: ([\d.]+)(?:, to start ([\d.]+))?$", re.MULTILINE)
_LOAD_SLACK = 1.3
"""Cores used per declared thread that pass: interpreters and file systems have threads too."""


def read_record(path: Path) -> Record | None:
    """The provenance in a table, array file or figure; None for plain text.

    Raises:
        DataError: if the file is missing, damaged, or should have provenance and has none.
    """
    if path.suffix in (".parquet", ".safetensors"):
        return read_provenance(path)
    if path.suffix in (".png", ".pdf"):
        return read_figure_record(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return None


@dataclass
class Chain:
    """Files and, recursively, everything that they were made from.

    Attributes:
        records: provenance of every file that is sound; None for texts, and for given weights,
            which were not made here.
        problems: one line per file that is missing or damaged, or has no provenance.
    """

    records: dict[Path, Record | None]
    problems: list[str]


def read_chain(files: Iterable[Path]) -> Chain:
    """Follow files back to what they were made from.

    Saved states of trainings, which are removed when the training is done, are left out.
    """
    chain = Chain({}, [])
    final = set(files)
    waiting, seen = sorted(final, reverse=True), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        foreign = path not in final and path.parts[0] not in ("results", "figures")
        try:
            chain.records[path] = None if foreign else read_record(path)
        except DataError as error:
            chain.problems.append(str(error))
        else:
            waiting += _inputs(chain.records[path])
    chain.records = dict(sorted(chain.records.items()))
    return chain


def collect_provenance(files: Iterable[Path], benchmarks: Path, logs: Path) -> dict[str, Any]:
    """What made every file of a run, and what each of its jobs cost.

    Args:
        files: final tables, figures and texts; what they were made from is found by itself.
        benchmarks: folder of Snakemake's benchmark files.
        logs: folder of the logs of the same jobs.

    Returns:
        JSON-like: ``files``, by path, with ``sha256`` of the file and its provenance, if it can
        hold one, and ``jobs``, by name, as :func:`read_jobs` gives them. A figure holds no seconds,
        so that it is the same in every run; they are those of its job.

    Raises:
        DataError: if a file is missing or damaged, or has no provenance.
    """
    chain = read_chain(files)
    if chain.problems:
        raise DataError("\n".join(chain.problems))
    return {
        "files": {
            path.as_posix(): {"sha256": _file_digest(path), **(record or {})}
            for path, record in chain.records.items()
        },
        "jobs": read_jobs(benchmarks, logs),
    }


def read_jobs(benchmarks: Path, logs: Path) -> dict[str, dict[str, Any]]:
    """Seconds, peak memory (MB) and cores of every job, as used and as declared.

    What is declared is None where Snakemake ran without ``benchmark-extended``. Snakemake looks at
    a job too seldom to know its processor seconds, which the job itself wrote to its log.

    Raises:
        DataError: if a benchmark file is damaged.
    """
    jobs = {}
    for path in sorted(benchmarks.rglob("*.tsv")):
        try:
            row = pd.read_csv(path, sep="\t").iloc[-1]
            resources = ast.literal_eval(row["resources"]) if "resources" in row else {}
            name = path.relative_to(benchmarks)
            used, start = _processor_seconds(logs / name.with_suffix(".log"))
            jobs[name.with_suffix("").as_posix()] = {
                "rule": str(row["rule_name"]) if "rule_name" in row else path.stem,
                "seconds": float(row["s"]),
                "processor_seconds": used,
                "start_seconds": start,
                "memory_mb": _number(row["max_rss"]),
                "declared_memory_mb": resources.get("mem_mb"),
                "cores": (_number(row["mean_load"]) or 0.0) / 100,
                "declared_threads": _number(row["threads"]) if "threads" in row else None,
            }
        except (KeyError, ValueError, SyntaxError, IndexError) as error:
            raise DataError(f"{path}: not a benchmark file of Snakemake ({error!r})") from None
    return jobs


def _processor_seconds(log: Path) -> tuple[float | None, float | None]:
    """A job's processor seconds, and those of its start; None where its log does not say."""
    found = _PROCESSOR.findall(log.read_text("utf-8", "replace")) if log.is_file() else []
    return (float(found[-1][0]), float(found[-1][1])) if found else (None, None)


def describe_overhead(jobs: Mapping[str, Mapping[str, Any]], log: Path) -> str:
    """The share of a run's processor time that was not spent in the library, in one line.

    Of the jobs that count is their start: the interpreter and the imports. ``log`` is Snakemake's
    own, with its seconds of every run that made these jobs.
    """
    known = [job for job in jobs.values() if job.get("processor_seconds") is not None]
    text = log.read_text("utf-8") if log.is_file() else ""
    own = sum(float(seconds) for seconds, _ in _PROCESSOR.findall(text))
    start = sum(job["start_seconds"] for job in known)
    total = own + sum(job["processor_seconds"] for job in known)
    if not total:
        return "processor time: the logs do not say"
    return (
        f"processor time: {total / 60:.1f} minutes, {(own + start) / total:.1%} of it overhead: "
        f"starting {len(known)} of {len(jobs)} jobs {start:.0f} s, Snakemake itself {own:.0f} s"
    )


def find_contradictions(chain: Chain) -> Iterator[str]:
    """Files that are damaged, or made from other inputs than those on disk, one line each."""
    yield from chain.problems
    contents = {}
    for path in chain.records:
        try:
            contents[path] = _content(path)
        except DataError as error:
            if str(error) not in chain.problems:
                yield str(error)
    for path, record in chain.records.items():
        for name, digest in (record or {}).get("inputs", {}).items():
            if contents.get(Path(name), digest) != digest:
                yield f"{path}: was made from another {name} than the one on disk"
        if record is not None and path.suffix in (".pdf", ".png"):
            yield from _figure_contradictions(path, record, chain.records)


def find_strays(collected: Mapping[str, Any], figures: Path) -> Iterator[str]:
    """Figures in a folder that the run does not have, one line each."""
    for path in sorted(figures.rglob("*.p*")):
        if path.as_posix() not in collected["files"]:
            yield f"{path}: not of the recorded run"


def find_changes(collected: Mapping[str, Any]) -> Iterator[str]:
    """Files that changed or vanished since :func:`collect_provenance`, one line each."""
    for name, entry in collected["files"].items():
        if not Path(name).is_file():
            yield f"{name}: listed, but gone"
        elif _file_digest(Path(name)) != entry["sha256"]:
            yield f"{name}: changed since the run was recorded"


def find_misfits(collected: Mapping[str, Any]) -> Iterator[str]:
    """Tables that do not fit their schemas as they are now, one line each."""
    for path in map(Path, collected["files"]):
        name = "/".join(path.with_suffix("").parts[2:])
        if path.suffix == ".parquet" and path.is_file() and name in table_names():
            try:
                load_schema(name).check(read_table(path), source=path)
            except DataError as error:
                yield str(error)


def find_excesses(collected: Mapping[str, Any]) -> Iterator[str]:
    """Jobs that used more memory or cores than their rule declares, one line each.

    Snakemake looks at a long job's memory every 30 s; the peak that a file's own record holds is
    exact, and is compared with the most that a job of its rule declares.
    """
    most: dict[str, int] = {}
    for name, job in collected["jobs"].items():
        memory, cores = job["declared_memory_mb"], job["declared_threads"]
        if memory is None or cores is None:
            yield f"{name}: no declared limits; run with benchmark-extended, as the profiles do"
            continue
        most[job["rule"]] = max(memory, most.get(job["rule"], 0))
        if (job["memory_mb"] or 0) > memory:
            yield f"{name}: used {job['memory_mb']:.0f} MB of memory, its rule declares {memory}"
        if job["cores"] > _LOAD_SLACK * cores:
            yield f"{name}: kept {job['cores']:.1f} cores busy, its rule declares {cores:.0f}"
    for name, record in collected["files"].items():
        rule = record.get("script", "").removesuffix(".py")
        peak = record.get("peak_memory_mb", 0)
        if peak > most.get(rule, peak):
            yield f"{name}: its job used {peak} MB of memory, {rule} declares {most[rule]}"


@dataclass(frozen=True)
class Comparison:
    """Two runs of one preset.

    Attributes:
        differences: one line each.
        compared: number of files that are in both.
        timed: files that hold seconds; all but the seconds is compared.
    """

    differences: list[str]
    compared: int
    timed: list[str]


def compare_runs(first: Path, second: Path, preset: str) -> Comparison:
    """Compare the results and figures of a preset in two project folders.

    Tables and arrays are compared by content, figures and texts byte by byte. Seconds cannot be
    equal: in tables named ``*_times`` they are left out, and of figures drawn from these only the
    other inputs and the parameters are compared.

    Raises:
        DataError: if a file is damaged, or there is nothing to compare.
    """
    listed = [_products(folder, preset) for folder in (first, second)]
    if not listed[0] or not listed[1]:
        raise DataError(f"{first}, {second}: no results of preset {preset!r} in one of them")
    differences = [
        f"{name}: only in {folder}"
        for name in sorted(listed[0] ^ listed[1])
        for folder, names in zip((first, second), listed, strict=True)
        if name in names
    ]
    timed = []
    for name in sorted(listed[0] & listed[1]):
        facts = [_comparable(folder / name) for folder in (first, second)]
        if facts[0] != facts[1]:
            differences.append(f"{name}: differs")
        if facts[0][0] == "timed":
            timed.append(name)
    return Comparison(differences, len(listed[0] & listed[1]), timed)


def _products(folder: Path, preset: str) -> set[str]:
    found = [
        Path(place, name).relative_to(folder)
        for room in ("results", "figures")
        for place, _, names in os.walk(folder / room / preset, followlinks=True)
        for name in names
        if name != "provenance.json"
    ]
    return {path.as_posix() for path in found if not {"benchmarks", "report"} & set(path.parts)}


def _comparable(path: Path) -> tuple[str, Any]:
    """What must be equal in two runs."""
    if path.stem.endswith("_times"):
        return "timed", table_digest(read_table(path).drop(columns="seconds", errors="ignore"))
    record = read_record(path)
    inputs = (record or {}).get("inputs", {})
    if path.suffix in (".png", ".pdf") and any(name.endswith("_times.parquet") for name in inputs):
        assert record is not None
        others = {name: d for name, d in inputs.items() if not name.endswith("_times.parquet")}
        return "timed", (record["parameters"], others)
    return "all", _content(path)


def _content(path: Path) -> str:
    """Digest of what a file says, whoever made it: of the values of tables and arrays."""
    if path.suffix == ".parquet":
        return table_digest(read_table(path))
    if path.suffix == ".safetensors":
        return arrays_digest(read_arrays(path))
    if path.suffix in (".png", ".pdf"):
        read_figure_record(path)
    return _file_digest(path)


def _inputs(record: Record | None) -> list[Path]:
    paths = [Path(name) for name in (record or {}).get("inputs", {})]
    return [path for path in paths if path.parts[0] != "scratch"]


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _figure_contradictions(
    path: Path, record: Record, records: Mapping[Path, Record | None]
) -> Iterator[str]:
    """Why a figure cannot be what its name says."""
    if (name := record["parameters"].get("figure")) != path.stem:
        yield f"{path}: was drawn as {name}"
    if not record["inputs"]:
        yield f"{path}: was drawn from no table"
    for name in record["inputs"]:
        if Path(name).parts[:2] != ("results", path.parts[1]):
            yield f"{path}: was drawn from {name}, which is not of its preset"
    other = path.with_suffix(".png" if path.suffix == ".pdf" else ".pdf")
    if not other.exists():
        yield f"{path}: has no {other.name} beside it"
    elif path.suffix == ".pdf" and _facts(record) != _facts(records.get(other, record)):
        yield f"{path}: drawn in another run than its PNG"


def _facts(record: Record | None) -> Record:
    return {key: value for key, value in (record or {}).items() if key != "content"}


def _number(value: object) -> float | None:
    """A benchmark's number; None where the job was too short to be measured."""
    number = pd.to_numeric(str(value), errors="coerce")
    return None if pd.isna(number) else float(number)
