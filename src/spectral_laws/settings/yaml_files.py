"""Strict reading of YAML settings: what YAML lets through or reads in two ways is refused."""

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode

from spectral_laws.errors import ConfigError

_CORE = "tag:yaml.org,2002:"
_KEYS = {f"{_CORE}str", f"{_CORE}merge"}
_NUMBERS = {f"{_CORE}int", f"{_CORE}float"}
# YAML 1.1 reads 010 as 8 and 1:30 as 90, YAML 1.2 and JSON do not.
_AMBIGUOUS = re.compile(r"[-+]?0[0-9_]+|.*:.*")


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> MappingNode:  # noqa: ANN401
        node = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key, _ in node.value:
            if key.tag not in _KEYS:
                _refuse(key, f"a key must be a string, found {key.value!r}")
            if key.value in keys:
                _refuse(key, f"key {key.value!r} is given twice")
            keys.add(key.value)
        return node

    def compose_scalar_node(self, anchor: Any) -> ScalarNode:  # noqa: ANN401
        node = super().compose_scalar_node(anchor)
        if node.tag in _NUMBERS and _AMBIGUOUS.fullmatch(node.value):
            _refuse(node, f"{node.value} is another number to other readers of YAML")
        return node


def _refuse(node: Node, problem: str) -> NoReturn:
    raise ConstructorError(None, None, problem, node.start_mark)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping of plain values: mappings with string keys, lists, strings, numbers, null.

    Anchors, aliases and merge keys are as in YAML. Refused are tags, dates, keys that are given
    twice or are no strings, and numbers that YAML 1.1 and 1.2 read differently (010, 1:30).

    Raises:
        ConfigError: naming the file and, where there is one, the line.
    """
    try:
        with path.open("rb") as file:
            content = yaml.load(file, _Loader)
        json.dumps(content)  # fails at dates, sets, and anchors that contain themselves
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: not plain YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must hold a mapping of keys, found {type(content).__name__}")
    return content
