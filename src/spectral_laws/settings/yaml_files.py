"""Strict reading of YAML settings: what is ambiguous, hidden or harmful is refused by name."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from spectral_laws.errors import ConfigError

MAX_BYTES = 1 << 18
"""Larger files are no settings."""

MAX_VALUES = 50_000
"""Values once every alias is replaced by what it stands for; config.yaml has 2700."""

TEMPLATE_KEY = "__use_yte__"
"""At the top level it would make Snakemake run expressions that the file holds."""

_CORE = "tag:yaml.org,2002:"
_PLAIN = {f"{_CORE}{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null")}
_NUMBERS = {f"{_CORE}int", f"{_CORE}float"}
_MERGE = f"{_CORE}merge"
# YAML 1.1 reads 010 as 8 and 1:30 as 90, YAML 1.2 and JSON do not.
_AMBIGUOUS = re.compile(r"[-+]?0[0-9_]+|.*:.*")


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping of plain values: mappings with string keys, lists, strings, numbers, null.

    Anchors, aliases and merge keys are as in YAML. Refused are tags, keys that are given twice or
    are no strings, dates, numbers that YAML 1.1 and 1.2 read differently (010, 1:30), anchors that
    contain themselves, and more than ``MAX_VALUES`` values once the aliases are replaced.

    Raises:
        ConfigError: naming the file and, where there is one, the line.
    """
    try:
        content = path.read_bytes()
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{path}: {len(content)} bytes, more than settings ever have")
        return _parse(content.decode("utf-8"), path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(f"{path}: must hold a mapping of keys, found nothing")
        _count(root, {}, path)
        for node in _nodes(root):
            _check(node, path)
        content = loader.construct_document(root)
    finally:
        loader.dispose()
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must hold a mapping of keys, found {type(content).__name__}")
    if TEMPLATE_KEY in content:
        raise ConfigError(f"{path}: {TEMPLATE_KEY}: settings are values, templates are not run")
    return content


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, CollectionNode):
        yield from node.value


def _nodes(root: Node) -> Iterator[Node]:
    """Every node once, however many aliases lead to it."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        yield node
        for child in _children(node):
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)


def _count(node: Node, known: dict[int, int | None], path: Path) -> int:
    """Values below a node with its aliases replaced; ``known`` has None where it is being made."""
    if id(node) in known:
        size = known[id(node)]
        if size is None:
            raise ConfigError(f"{path}, {_line(node)}: an anchor contains itself")
        return size
    known[id(node)] = None
    size = 1 + sum(_count(child, known, path) for child in _children(node))
    if size > MAX_VALUES:
        raise ConfigError(f"{path}, {_line(node)}: aliases stand for more than {MAX_VALUES} values")
    known[id(node)] = size
    return size


def _check(node: Node, path: Path) -> None:
    if node.tag not in _PLAIN and not (node.tag == _MERGE and node.value == "<<"):
        kind = "dates are" if node.tag == f"{_CORE}timestamp" else f"the tag {node.tag} is"
        raise ConfigError(
            f"{path}, {_line(node)}: only plain YAML values are allowed, {kind} not; a string "
            "stands in quotes"
        )
    if isinstance(node, ScalarNode):
        node.value.encode()  # half of a surrogate pair is no character
    if isinstance(node, ScalarNode) and node.tag in _NUMBERS and _AMBIGUOUS.fullmatch(node.value):
        raise ConfigError(
            f"{path}, {_line(node)}: {node.value} is another number to other readers of YAML; "
            "write it in decimals, without leading zeros and colons"
        )
    if isinstance(node, MappingNode):
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, ScalarNode) or key.tag not in (f"{_CORE}str", _MERGE):
                found = f"{key.value!r}" if isinstance(key, ScalarNode) else "a collection"
                raise ConfigError(f"{path}, {_line(key)}: a key must be a string, found {found}")
            if key.value in keys:
                raise ConfigError(f"{path}, {_line(key)}: key {key.value!r} is given twice")
            keys.add(key.value)


def _line(node: Node) -> str:
    return f"line {node.start_mark.line + 1}"


def check_removals(
    base: Mapping[str, Any], over: Mapping[str, Any], mapping: tuple[str, str], path: Path
) -> None:
    """Refuse a null in ``over`` that removes an entry which ``base`` does not have.

    Raises:
        ConfigError: naming the file and the key.
    """
    section, name = mapping
    entries = [_entries(source, section, name) for source in (over, base)]
    for key, value in entries[0].items():
        if value is None and key not in entries[1]:
            raise ConfigError(
                f"{path}: {section}.{name}.{key}: null removes an inherited entry, and there is "
                f"none of this name; there are {', '.join(entries[1])}"
            )


def _entries(source: Mapping[str, Any], section: str, name: str) -> Mapping[str, Any]:
    inner = source.get(section)
    entries = inner.get(name) if isinstance(inner, Mapping) else None
    return entries if isinstance(entries, Mapping) else {}
