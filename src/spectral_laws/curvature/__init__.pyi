from .checkpoints import load_checkpoint as load_checkpoint
from .datasets import ImageData as ImageData
from .datasets import load_images as load_images
from .directional import DirectionalSpectrum as DirectionalSpectrum
from .directional import measure_directional_curvature as measure_directional_curvature
from .exponents import fit_exponents as fit_exponents
from .models.factory import build_model as build_model
from .networks import TrainedNetwork as TrainedNetwork
from .networks import train_network as train_network
from .spectra import measure_spectra as measure_spectra
from .spectra import spectra_table as spectra_table
from .structure import gauss_newton_obstacles as gauss_newton_obstacles
from .training import TrainingResult as TrainingResult
from .training import train_classifier as train_classifier

__all__ = [
    "DirectionalSpectrum",
    "ImageData",
    "TrainedNetwork",
    "TrainingResult",
    "build_model",
    "fit_exponents",
    "gauss_newton_obstacles",
    "load_checkpoint",
    "load_images",
    "measure_directional_curvature",
    "measure_spectra",
    "spectra_table",
    "train_classifier",
    "train_network",
]
