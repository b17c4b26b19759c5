from .controls.eigenvalues import LayerEigenvalues as LayerEigenvalues
from .controls.eigenvalues import layer_eigenvalues as layer_eigenvalues
from .controls.finite_differences import (
    finite_difference_curvatures as finite_difference_curvatures,
)
from .datasets.load import load_samples as load_samples
from .datasets.samples import Samples as Samples
from .derivatives.directional import DirectionalSpectrum as DirectionalSpectrum
from .derivatives.directional import measure_directional_curvature as measure_directional_curvature
from .fits.exponents import fit_exponents as fit_exponents
from .introspection.structure import gauss_newton_obstacles as gauss_newton_obstacles
from .kronecker.ladder import Ladder as Ladder
from .kronecker.ladder import measure_ladder as measure_ladder
from .kronecker.network_factors import kronecker_factors as kronecker_factors
from .models.factory import build_model as build_model
from .spectra import measure_networks as measure_networks
from .spectra import spectra_table as spectra_table
from .training.checkpoints import load_checkpoint as load_checkpoint
from .training.networks import TrainedNetworks as TrainedNetworks
from .training.networks import train_networks as train_networks
from .training.train import TrainingResult as TrainingResult
from .training.train import train_model as train_model

__all__ = [
    "DirectionalSpectrum",
    "Ladder",
    "LayerEigenvalues",
    "Samples",
    "TrainedNetworks",
    "TrainingResult",
    "build_model",
    "finite_difference_curvatures",
    "fit_exponents",
    "gauss_newton_obstacles",
    "kronecker_factors",
    "layer_eigenvalues",
    "load_checkpoint",
    "load_samples",
    "measure_directional_curvature",
    "measure_ladder",
    "measure_networks",
    "spectra_table",
    "train_model",
    "train_networks",
]
