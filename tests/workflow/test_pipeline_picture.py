"""docs/pipeline.svg is the graph of the rules as they are; it is read without graphviz."""

import importlib.util
import xml.etree.ElementTree as ElementTree


def drawn(picture):
    """Labels of the nodes by name, and the edges, of a picture made by dot."""
    nodes, edges = {}, set()
    for group in ElementTree.parse(picture).iterfind(".//{*}g"):
        title = group.findtext("{*}title")
        if group.get("class") == "node":
            nodes[title] = "\n".join(text.text for text in group.iterfind("{*}text"))
        elif group.get("class") == "edge":
            edges.add(tuple(title.split("->")))
    return nodes, edges


def test_the_picture_is_the_graph_of_the_rules(root, project):
    spec = importlib.util.spec_from_file_location("draw", root / "workflow/draw_pipeline.py")
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    rulegraph = project.snakemake("--rulegraph")
    nodes, edges = draw.read_graph(rulegraph, root / "workflow/rules")
    outdated = "draw it again: .venv/bin/python workflow/draw_pipeline.py"
    labels, arrows = drawn(root / draw.PICTURE)
    assert labels == {node: label for node, (_, label) in nodes.items()}, outdated
    assert arrows == edges, outdated
