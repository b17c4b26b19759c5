"""What stands beside the directional curvatures: Hessian eigenvalues and finite differences."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from spectral_laws import rng
from spectral_laws.curvature.controls.eigenvalues import layer_eigenvalues
from spectral_laws.curvature.controls.finite_differences import finite_difference_curvatures
from spectral_laws.curvature.datasets.samples import Samples
from spectral_laws.curvature.derivatives.directional import measure_directional_curvature
from spectral_laws.curvature.spectra import batch_of, layer_columns, load_networks
from spectral_laws.curvature.training.checkpoints import Arrays, last_epochs
from spectral_laws.device import find_device
from spectral_laws.settings.curvature import ControlSettings, Measurement, Model


def measure_controls(
    networks: Mapping[tuple[int, int], Arrays],
    samples: Samples,
    model: Model,
    measurement: Measurement,
    controls: ControlSettings,
    *,
    name: str,
    seed: int,
    label_smoothing: float = 0.0,
    device: str = "cpu",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure the controls on the last epoch of the first replicates, on one batch.

    Returned are the tables ``eigenvalues`` of each layer's Hessian block, the largest first, and
    ``finite_differences``.
    """
    target = find_device(device)
    inputs, targets = batch_of(samples, controls.batch_size, seed=seed, device=target)
    last = last_epochs(networks)
    chosen = {
        (replicate, epoch): arrays
        for (replicate, epoch), arrays in networks.items()
        if epoch == last[replicate] and replicate < controls.replicates
    }
    # The whole batch in one chunk: Lanczos then keeps one graph for all its products.
    options: dict[str, Any] = {
        "chunk_size": controls.batch_size,
        "label_smoothing": label_smoothing,
        "progress": True,
    }
    eigenvalue_tables, difference_tables = [], []
    for (replicate, _), network in load_networks(chosen, samples, model, device=target):
        spectra = measure_directional_curvature(
            network, inputs, targets, top_k=measurement.top_k, method=measurement.method, **options
        )
        eigenvalues = layer_eigenvalues(
            network,
            inputs,
            targets,
            n_eigenvalues=controls.eigenvalues,
            seed=rng.torch_seed(seed, "eigenvalues", replicate),
            layers=[spectrum.layer for spectrum in spectra],
            **options,
        )
        differences = finite_difference_curvatures(
            network, inputs, targets, spectra, step=controls.finite_difference_step, **options
        )
        for i, (spectrum, pairs, values) in enumerate(
            zip(spectra, eigenvalues, differences, strict=True)
        ):
            place = {"model": name, "seed": replicate}
            place |= layer_columns(network, model.architecture, spectrum, i)
            h = spectrum.directional_curvature
            n = min(len(h), len(pairs.eigenvalues))
            eigenvalue_tables.append(
                pd.DataFrame(
                    place
                    | {
                        "index": np.arange(1, n + 1),
                        "eigenvalue": pairs.eigenvalues[:n],
                        "directional_curvature": h[:n],
                        "overlap": np.diag(pairs.overlaps(spectrum))[:n],
                    }
                )
            )
            difference_tables.append(
                pd.DataFrame(
                    place
                    | {
                        "index": np.arange(1, len(h) + 1),
                        "singular_value": spectrum.singular_values,
                        "directional_curvature": h,
                        "finite_difference": values,
                        "step": controls.finite_difference_step,
                    }
                )
            )
    return (
        pd.concat(eigenvalue_tables, ignore_index=True),
        pd.concat(difference_tables, ignore_index=True),
    )
