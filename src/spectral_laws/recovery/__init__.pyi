from .hermite import FeatureMap as FeatureMap
from .hermite import feature_dimension as feature_dimension
from .hermite import hermite_features as hermite_features
from .hermite import index_pairs as index_pairs
from .kernels import KernelRidgeFit as KernelRidgeFit
from .kernels import fit_kernel_ridge as fit_kernel_ridge
from .kernels import polynomial_kernel as polynomial_kernel
from .krylov import Eigenpairs as Eigenpairs
from .krylov import leading_eigenpairs as leading_eigenpairs
from .moment import MomentMatrix as MomentMatrix
from .overlaps import direction_cos2 as direction_cos2
from .overlaps import feature_overlap as feature_overlap
from .overlaps import half_recovery as half_recovery
from .overlaps import matched_overlap as matched_overlap
from .overlaps import n_recovered as n_recovered
from .readout import ScalarReadout as ScalarReadout
from .readout import normalised_mse as normalised_mse
from .readout import second_latent as second_latent
from .recover import SECOND_LAYERS as SECOND_LAYERS
from .recover import Recovery as Recovery
from .recover import recover_features as recover_features
from .samples import Samples as Samples
from .spectrum import lanczos_quadrature as lanczos_quadrature
from .spectrum import moment_spectrum as moment_spectrum
from .teacher import Teacher as Teacher
from .teacher import power_law_weights as power_law_weights
from .theory import asymptotic_mse as asymptotic_mse
from .theory import bulk_edges as bulk_edges
from .theory import recovered_count as recovered_count
from .theory import tail_mse as tail_mse
from .theory import thresholds as thresholds

__all__ = [
    "SECOND_LAYERS",
    "Eigenpairs",
    "FeatureMap",
    "KernelRidgeFit",
    "MomentMatrix",
    "Recovery",
    "Samples",
    "ScalarReadout",
    "Teacher",
    "asymptotic_mse",
    "bulk_edges",
    "direction_cos2",
    "feature_dimension",
    "feature_overlap",
    "fit_kernel_ridge",
    "half_recovery",
    "hermite_features",
    "index_pairs",
    "lanczos_quadrature",
    "leading_eigenpairs",
    "matched_overlap",
    "moment_spectrum",
    "n_recovered",
    "normalised_mse",
    "polynomial_kernel",
    "power_law_weights",
    "recover_features",
    "recovered_count",
    "second_latent",
    "tail_mse",
    "thresholds",
]
