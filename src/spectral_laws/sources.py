"""Which source files a script really uses, so that the pipeline reruns what an edit affects.

The package's ``__init__`` files load lazily, so the static imports of a script, followed from
module to module, are exactly the modules that run.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import spectral_laws

_PACKAGE = "spectral_laws"
_ROOT = Path(spectral_laws.__file__).parent


@cache
def source_files(script: Path) -> tuple[Path, ...]:
    """The script, every module of this package it imports (transitively), and their data.

    Args:
        script: a Python file; only its static imports are followed.

    Returns:
        Sorted paths, relative to the working directory where they lie below it.

    Raises:
        ValueError: for ``from spectral_laws.room import name`` where ``name`` is not a module:
            a lazy package hides where the name comes from.
    """
    found: set[Path] = set()
    waiting = [script.resolve()]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += _imports(path)
    data = {file for path in found for file in _data_of(path)}
    here = Path.cwd()
    return tuple(sorted(p.relative_to(here) if here in p.parents else p for p in found | data))


@cache
def _imports(path: Path) -> list[Path]:
    """Files of this package that the file imports, ``a/b/c.py`` for ``from a.b.c import d``."""
    names = []
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    ours = [name for name in names if name.split(".")[0] == _PACKAGE]
    return [file for name in ours for file in _module_files(name, path)]


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and the statements inside it, at any depth; expressions hold no imports."""
    yield node
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, block, [])
        for child in inner if isinstance(inner, list) else []:  # a lambda's body is an expression
            yield from _statements(child)


def _module_files(name: str, importer: Path) -> list[Path]:
    """Files that run when ``name`` is imported: the module and the packages above it."""
    files = []
    location = _ROOT
    for part in name.split(".")[1:]:
        files.append(location / "__init__.py")
        if (location / part).is_dir():
            location /= part
        elif (location / f"{part}.py").is_file():
            return [*files, location / f"{part}.py"]
        elif (location / "__init__.pyi").exists():
            raise ValueError(f"{importer}: import {name!r} from its own module, not the package")
        else:
            return files  # an attribute of a plain package
    return [*files, location / "__init__.py"]


@cache
def _data_of(module: Path) -> list[Path]:
    """Data of the same name beside a module: ``registry.yaml``, templates ``render.*.j2``."""
    if _ROOT not in module.parents:
        return []
    return [*module.parent.glob(f"{module.stem}.yaml"), *module.parent.glob(f"{module.stem}.*.j2")]
