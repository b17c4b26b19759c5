"""Time the reverse Gauss-Newton pass against naive double backpropagation, in one run.

Run from the repository's root: ``OMP_NUM_THREADS=1 python benchmarks/curvature.py``.
"""

import resource
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import torch
import typer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spectral_laws.curvature.directional import DirectionalSpectrum, measure_directional_curvature
from spectral_laws.curvature.models.resnet import ResNet18


def main(
    width: Annotated[int, typer.Option(help="Channels of the first stage.")] = 16,
    batch_size: Annotated[int, typer.Option(help="Samples of the batch.")] = 256,
    image_size: Annotated[int, typer.Option(help="Pixels a side.")] = 32,
    top_k: Annotated[int, typer.Option(help="Directions per layer.")] = 20,
    chunk_size: Annotated[int, typer.Option(help="Samples at a time of the fast pass.")] = 32,
    repeats: Annotated[int, typer.Option(help="Runs of the fast pass; the median counts.")] = 5,
    per_layer: Annotated[
        int, typer.Option(help="Directions per layer timed naively and scaled up; 0 times all.")
    ] = 1,
) -> None:
    """Print seconds, ratio, peak memory, the multiple of one forward pass, and the agreement."""
    torch.manual_seed(0)
    model = ResNet18(in_channels=3, width=width, n_classes=10).eval()
    x, y = torch.randn(batch_size, 3, image_size, image_size), torch.arange(batch_size) % 10
    fast_x = x.to(memory_format=torch.channels_last)

    def measure() -> list[DirectionalSpectrum]:
        return measure_directional_curvature(
            model, fast_x, y, top_k=top_k, chunk_size=chunk_size, method="gauss_newton"
        )

    before = peak_megabytes()
    spectra = measure()
    fast_peak = peak_megabytes()
    fast = float(np.median([seconds(measure) for _ in range(repeats)]))
    with torch.no_grad():
        forward = float(np.median([seconds(lambda: model(x)) for _ in range(repeats)]))
    n_directions = sum(len(spectrum.singular_values) for spectrum in spectra)

    naive, n_timed, error = 0.0, 0, 0.0
    for spectrum in spectra:
        available = len(spectrum.singular_values)
        ranks = range(min(per_layer or available, available))
        times = []
        for k in ranks:
            start = time.perf_counter()
            h = naive_curvature(model, x, y, spectrum, k)
            times.append(time.perf_counter() - start)
            error = max(error, abs(spectrum.directional_curvature[k] / h - 1))
        naive += float(np.mean(times)) * available
        n_timed += len(times)
    print(
        f"ResNet-18 width {width}, B = {batch_size}, {image_size} x {image_size} pixels, "
        f"{len(spectra)} layers, {n_directions} directions, {torch.get_num_threads()} thread(s)"
    )
    scaled = "" if n_timed == n_directions else f" (scaled up from {n_timed} directions timed)"
    print(f"naive double backpropagation: {naive:.1f} s{scaled}")
    print(f"reverse Gauss-Newton:         {fast:.2f} s (median of {repeats})")
    print(f"ratio:                        {naive / fast:.1f}")
    print(f"one forward pass:             {forward:.3f} s; the measurement is {fast / forward:.1f}")
    print(f"peak memory: {before:.0f} MB before, {fast_peak:.0f} MB after the Gauss-Newton pass,")
    print(f"             {peak_megabytes():.0f} MB after the naive one")
    print(f"largest relative difference, float32: {error:.1e}")


def naive_curvature(
    model: nn.Module, x: Tensor, y: Tensor, spectrum: DirectionalSpectrum, k: int
) -> float:
    """One direction by double backpropagation through the whole batch, this layer's weight only."""
    weight = model.get_parameter(f"{spectrum.layer}.weight")
    u, v = spectrum.left_singular_vectors[:, k], spectrum.right_singular_vectors[:, k]
    direction = torch.from_numpy(np.outer(u, v)).to(weight).reshape(weight.shape)
    (gradient,) = torch.autograd.grad(cross_entropy(model(x), y), weight, create_graph=True)
    (product,) = torch.autograd.grad((gradient * direction).sum(), weight)
    return float((product * direction).sum())


def seconds(function: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def peak_megabytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    typer.run(main)
