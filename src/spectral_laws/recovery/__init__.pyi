from .equivalent import EquivalentRecovery as EquivalentRecovery
from .equivalent import simulate_equivalent as simulate_equivalent
from .evaluate import Recovery as Recovery
from .hermite import FeatureMap as FeatureMap
from .hermite import feature_dimension as feature_dimension
from .hermite import hermite_features as hermite_features
from .hermite import index_pairs as index_pairs
from .kernels import KernelRidgeFits as KernelRidgeFits
from .kernels import arc_cosine_kernel as arc_cosine_kernel
from .kernels import fit_kernel_ridge as fit_kernel_ridge
from .kernels import polynomial_kernel as polynomial_kernel
from .kernels import rbf_kernel as rbf_kernel
from .krylov import Eigenpairs as Eigenpairs
from .krylov import leading_eigenpairs as leading_eigenpairs
from .label_law import LabelLaw as LabelLaw
from .moment import MomentMatrix as MomentMatrix
from .network import NetworkFit as NetworkFit
from .network import fit_network as fit_network
from .overlaps import direction_cos2 as direction_cos2
from .overlaps import feature_overlap as feature_overlap
from .overlaps import half_recovery as half_recovery
from .overlaps import matched_overlap as matched_overlap
from .overlaps import n_recovered as n_recovered
from .perturbation import Perturbation as Perturbation
from .perturbation import Spectrum as Spectrum
from .perturbation import perturb as perturb
from .population import PopulationMoment as PopulationMoment
from .population import population_moment as population_moment
from .random_features import RandomFeatures as RandomFeatures
from .random_features import fit_random_features as fit_random_features
from .readout import ScalarReadout as ScalarReadout
from .readout import normalised_mse as normalised_mse
from .readout import second_latent as second_latent
from .recover import recover_equivalent as recover_equivalent
from .recover import recover_features as recover_features
from .samples import Samples as Samples
from .scaling_laws import asymptotic_mse as asymptotic_mse
from .scaling_laws import recovered_count as recovered_count
from .scaling_laws import tail_mse as tail_mse
from .scaling_laws import thresholds as thresholds
from .spectrum import lanczos_quadrature as lanczos_quadrature
from .spectrum import moment_spectrum as moment_spectrum
from .teacher import Teacher as Teacher
from .teacher import power_law_weights as power_law_weights
from .theory import SECOND_LAYERS as SECOND_LAYERS
from .theory import Prediction as Prediction
from .theory import bulk_density as bulk_density
from .theory import bulk_edges as bulk_edges
from .theory import predict as predict
from .theory import predict_mse as predict_mse

__all__ = [
    "SECOND_LAYERS",
    "Eigenpairs",
    "EquivalentRecovery",
    "FeatureMap",
    "KernelRidgeFits",
    "LabelLaw",
    "MomentMatrix",
    "NetworkFit",
    "Perturbation",
    "PopulationMoment",
    "Prediction",
    "RandomFeatures",
    "Recovery",
    "Samples",
    "ScalarReadout",
    "Spectrum",
    "Teacher",
    "arc_cosine_kernel",
    "asymptotic_mse",
    "bulk_density",
    "bulk_edges",
    "direction_cos2",
    "feature_dimension",
    "feature_overlap",
    "fit_kernel_ridge",
    "fit_network",
    "fit_random_features",
    "half_recovery",
    "hermite_features",
    "index_pairs",
    "lanczos_quadrature",
    "leading_eigenpairs",
    "matched_overlap",
    "moment_spectrum",
    "n_recovered",
    "normalised_mse",
    "perturb",
    "polynomial_kernel",
    "population_moment",
    "power_law_weights",
    "predict",
    "predict_mse",
    "rbf_kernel",
    "recover_equivalent",
    "recover_features",
    "recovered_count",
    "second_latent",
    "simulate_equivalent",
    "tail_mse",
    "thresholds",
]
