"""Time our curvatures against three slow ways, in one run, each in a process of its own.

Run from the repository's root: ``OMP_NUM_THREADS=1 python benchmarks/curvature.py``, and with
``--model gpt2`` for a language model. Seconds are those of the processor, so that other work on the
machine counts little; peak memory is of each process, above that of its imports and data.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
import typer
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

from spectral_laws.curvature.derivatives.directional import measure_directional_curvature
from spectral_laws.curvature.models.gpt2 import GPT2
from spectral_laws.curvature.models.resnet import ResNet18

Way = Literal["ours", "naive", "pyhessian", "curvlinops", "bounds"]
Directions = list[tuple[str, int, Tensor, float]]
"""Parameter, k, u_k v_k^T as a matrix, and our h_k."""
_WAYS = {
    "ours": "spectral-laws",
    "naive": "naive double backpropagation, gradient of the layer only",
    "pyhessian": "PyHessian's way, all parameters on one retained graph",
    "curvlinops": "curvlinops HessianLinearOperator, all parameters",
}
_BARS = {
    "resnet18": {"naive": 60.0, "curvlinops": 250.0},
    "gpt2": {"naive": 3.0},
}


def main(
    model: Annotated[Literal["resnet18", "gpt2"], typer.Option(help="Network.")] = "resnet18",
    batch_size: Annotated[int | None, typer.Option(help="Samples; 256 images, 64 texts.")] = None,
    top_k: Annotated[int, typer.Option(help="Directions per layer.")] = 20,
    chunk_size: Annotated[int, typer.Option(help="Samples at a time in our pass.")] = 32,
    timed: Annotated[
        int, typer.Option(help="Directions per layer timed naively, and scaled up.")
    ] = 1,
    timed_full: Annotated[
        int, typer.Option(help="Directions in all timed by each full-parameter way, and scaled.")
    ] = 4,
    way: Annotated[Way | None, typer.Option(hidden=True)] = None,
    folder: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Print seconds, ratios, peak memory and agreement of every way."""
    batch_size = batch_size or {"resnet18": 256, "gpt2": 64}[model]
    if way is None or folder is None:
        options = (batch_size, top_k, chunk_size, timed, timed_full)
        compare(model, options)
        return
    net, x, y = build(model, batch_size)
    # Fused attention has no second derivative; all ways take the same kernel.
    with sdpa_kernel(SDPBackend.MATH):
        if way == "bounds":
            print_bounds(net, x[:4], y[:4], top_k=top_k)
            return
        before = peak_megabytes()
        if way == "ours":
            result = ours(net, x, y, folder, top_k=top_k, chunk_size=chunk_size)
        else:
            per_layer = timed if way == "naive" else 1
            chosen = [d for d in load(folder) if d[1] < per_layer]
            if way != "naive":
                chosen = chosen[:: max(1, len(chosen) // timed_full)]
            result = slow(way, net, x, y, chosen)
    result["megabytes"] = peak_megabytes() - before
    (folder / f"{way}.json").write_text(json.dumps(result))


def compare(model: str, options: tuple[int, ...]) -> None:
    """Run every way in a process of its own and print the table."""
    names = ("--batch-size", "--top-k", "--chunk-size", "--timed", "--timed-full")
    command = [sys.executable, __file__, "--model", model]
    command += [str(part) for pair in zip(names, options, strict=True) for part in pair]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in _WAYS:
            subprocess.run([*command, "--way", way, "--folder", folder], check=True)
            path = Path(folder) / f"{way}.json"
            if path.exists():
                results[way] = json.loads(path.read_text())
    best = results["ours"]
    print(
        f"{model}, B = {options[0]}, {best['n_layers']} layers, {best['n_directions']} directions, "
        f"{torch.get_num_threads()} thread(s); one forward pass {best['forward']:.3f} s"
    )
    share = best["seconds"] / best["n_directions"] / best["forward"]
    print(f"ours: {share:.2f} forward passes for each direction")
    for way, result in results.items():
        seconds, scaled = result["seconds"], ""
        if way != "ours":
            seconds *= best["n_directions"]
            scaled = f", scaled up from {result['n_timed']} directions"
        bar = _BARS[model].get(way)
        wanted = "" if bar is None else f" (bar {bar:g})"
        ratio = "" if way == "ours" else f", {seconds / best['seconds']:.1f} times ours{wanted}"
        print(f"{_WAYS[way]}: {seconds:.1f} s{ratio}, {result['megabytes']:.0f} MB{scaled}")
        if way != "ours":
            print(f"    largest relative difference from ours: {result['difference']:.1e}")
    if model == "gpt2":
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*command, "--way", "bounds", "--folder", folder], check=True)


def build(model: str, batch_size: int) -> tuple[nn.Module, Tensor, Tensor]:
    """The network in eval mode, and a batch."""
    torch.manual_seed(0)
    if model == "gpt2":
        gpt2 = GPT2(n_tokens=80, context=64, width=96, depth=6, heads=4).eval()
        text = torch.randint(0, 80, (batch_size, 65))
        return gpt2, text[:, :-1], text[:, 1:]
    resnet = ResNet18(in_channels=3, width=16, n_classes=10).eval()
    x = torch.randn(batch_size, 3, 32, 32).to(memory_format=torch.channels_last)
    return resnet, x, torch.arange(batch_size) % 10


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean cross-entropy over samples, or positions."""
    return cross_entropy(model(x).flatten(0, -2), y.flatten())


def ours(
    model: nn.Module, x: Tensor, y: Tensor, folder: Path, *, top_k: int, chunk_size: int
) -> dict[str, float]:
    """Time the library, and keep its directions for the others."""
    start = time.process_time()
    spectra = measure_directional_curvature(model, x, y, top_k=top_k, chunk_size=chunk_size)
    seconds = time.process_time() - start
    with torch.no_grad():
        forward = float(np.median([cpu_seconds(lambda: model(x)) for _ in range(5)]))
    arrays = {}
    for i, spectrum in enumerate(spectra):
        arrays[f"{i}.u"] = spectrum.left_singular_vectors
        arrays[f"{i}.v"] = spectrum.right_singular_vectors
        arrays[f"{i}.h"] = spectrum.directional_curvature
        arrays[f"{i}.name"] = np.array(spectrum.layer)
    np.savez(folder / "directions.npz", **arrays)
    return {
        "seconds": seconds,
        "forward": forward,
        "n_layers": len(spectra),
        "n_directions": sum(len(spectrum.singular_values) for spectrum in spectra),
    }


def load(folder: Path) -> Directions:
    """The directions that :func:`ours` kept."""
    found: Directions = []
    with np.load(folder / "directions.npz", allow_pickle=False) as arrays:
        for i in range(sum(name.endswith(".u") for name in arrays.files)):
            u, v, h = (arrays[f"{i}.{key}"] for key in "uvh")
            for k, value in enumerate(h):
                direction = torch.from_numpy(np.outer(u[:, k], v[:, k])).float()
                found.append((f"{arrays[f'{i}.name']}.weight", k, direction, float(value)))
    return found


def slow(
    way: str,
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    directions: Directions,
) -> dict[str, float]:
    """Mean seconds of one direction (over layers), and the difference from ours."""
    makers: dict[str, Callable[..., Callable[[str, Tensor], float]]] = {
        "naive": naive,
        "pyhessian": pyhessian,
        "curvlinops": curvlinops,
    }
    curvature = makers[way](model, x, y)
    seconds, largest = 0.0, max(abs(h) for *_, h in directions)
    difference = 0.0
    for name, _, direction, expected in directions:
        start = time.process_time()
        h = curvature(name, direction.reshape(model.get_parameter(name).shape))
        seconds += time.process_time() - start
        difference = max(difference, abs(h - expected) / max(abs(h), 1e-3 * largest))
    n = len(directions)
    return {"seconds": seconds / n, "n_timed": n, "difference": difference}


def naive(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[str, Tensor], float]:
    """Double backpropagation through the whole batch, this layer's weight only."""

    def curvature(name: str, direction: Tensor) -> float:
        weight = model.get_parameter(name)
        for parameter in model.parameters():
            parameter.requires_grad_(parameter is weight)
        (gradient,) = torch.autograd.grad(loss_of(model, x, y), weight, create_graph=True)
        (product,) = torch.autograd.grad((gradient * direction).sum(), weight)
        return float((product * direction).sum())

    return curvature


def pyhessian(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[str, Tensor], float]:
    """The gradient's graph in all parameters is kept; each product is with the whole Hessian."""
    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad(
        loss_of(model, x, y), list(parameters.values()), create_graph=True
    )

    def curvature(name: str, direction: Tensor) -> float:
        vectors = [direction if n == name else torch.zeros_like(p) for n, p in parameters.items()]
        products = torch.autograd.grad(
            gradients, list(parameters.values()), vectors, retain_graph=True
        )
        return float((products[list(parameters).index(name)] * direction).sum())

    return curvature


def curvlinops(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[str, Tensor], float]:
    """The library's operator of the whole Hessian."""
    try:
        from curvlinops import HessianLinearOperator
    except ImportError:
        print(
            "curvlinops is not installed: that way is left out (pip install curvlinops-for-pytorch)"
        )
        raise SystemExit(0) from None
    parameters = dict(model.named_parameters())

    class ClassesFirst(nn.Module):
        """Logits as PyTorch's loss wants them, (B, C, T)."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Tensor) -> Tensor:
            return self.model(x).movedim(-1, 1)

    operator = HessianLinearOperator(
        ClassesFirst(),
        nn.CrossEntropyLoss(),
        list(parameters.values()),
        [(x, y)],
        check_deterministic=False,
    )
    sizes = [parameter.numel() for parameter in parameters.values()]

    def curvature(name: str, direction: Tensor) -> float:
        vectors = [direction if n == name else torch.zeros_like(p) for n, p in parameters.items()]
        product = operator @ torch.cat([vector.flatten() for vector in vectors])
        part = product.split(sizes)[list(parameters).index(name)]
        return float((part * direction.flatten()).sum())

    return curvature


def print_bounds(model: nn.Module, x: Tensor, y: Tensor, *, top_k: int) -> None:
    """What our pass spends its time on, by operation."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        measure_directional_curvature(model, x, y, top_k=top_k, method="exact")
    averages = profiler.key_averages()
    total = sum(entry.self_cpu_time_total for entry in averages)
    print(f"what bounds it, share of the time of {len(x)} samples:")
    for entry in sorted(averages, key=lambda e: -e.self_cpu_time_total)[:10]:
        print(f"    {entry.key}: {100 * entry.self_cpu_time_total / total:.0f} %")


def cpu_seconds(function: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def peak_megabytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    typer.run(main)
