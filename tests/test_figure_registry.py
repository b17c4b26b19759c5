"""Entries of figures.yaml that are wrong are named."""

import pytest

from spectral_laws import figure_registry
from spectral_laws.errors import ConfigError

ENTRY = "curvature_triangle:\n  title: Triangle\n  tables: [curvature/exponents]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY + ENTRY, "key 'curvature_triangle' is given twice"),
        (ENTRY.replace("title", "titel"), "figures.yaml: curvature_triangle.title: Field required"),
        (ENTRY.replace("triangle", "square"), "there is no module .*plotting.curvature.square"),
        (ENTRY.replace("[curvature/exponents]", "7"), "curvature_triangle.tables: "),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, monkeypatch, text, message):
    (tmp_path / "figures.yaml").write_text(text)
    read = figure_registry.read_yaml
    monkeypatch.setattr(figure_registry, "read_yaml", lambda path: read(tmp_path / "figures.yaml"))
    with pytest.raises(ConfigError, match=message):
        figure_registry.load_figures.__wrapped__()
