from .claims import draw_claims as draw_claims
from .curvature.alpha_by_layer import draw_curvature_alpha_by_layer as draw_curvature_alpha_by_layer
from .curvature.audit import draw_curvature_audit as draw_curvature_audit
from .curvature.controls import draw_curvature_controls as draw_curvature_controls
from .curvature.decomposition import draw_curvature_decomposition as draw_curvature_decomposition
from .curvature.factors import draw_curvature_factors as draw_curvature_factors
from .curvature.independence import draw_curvature_independence as draw_curvature_independence
from .curvature.ladder import draw_curvature_ladder as draw_curvature_ladder
from .curvature.mechanisms import draw_curvature_mechanisms as draw_curvature_mechanisms
from .curvature.participation import draw_curvature_participation as draw_curvature_participation
from .curvature.power_law import draw_curvature_power_law as draw_curvature_power_law
from .curvature.rank_models import draw_curvature_rank_models as draw_curvature_rank_models
from .curvature.trajectory import draw_curvature_trajectory as draw_curvature_trajectory
from .curvature.triangle import draw_curvature_triangle as draw_curvature_triangle
from .curvature.weights import draw_curvature_weights as draw_curvature_weights
from .curvature.windows import draw_curvature_windows as draw_curvature_windows
from .optimizers.gains import draw_optimizers_gains as draw_optimizers_gains
from .optimizers.layer_rates import draw_optimizers_layer_rates as draw_optimizers_layer_rates
from .optimizers.race import draw_optimizers_race as draw_optimizers_race
from .optimizers.responses import draw_optimizers_responses as draw_optimizers_responses
from .recovery.depth import DepthStudies as DepthStudies
from .recovery.depth import draw_recovery_depth as draw_recovery_depth
from .recovery.directions import draw_recovery_directions as draw_recovery_directions
from .recovery.error_exponents import draw_recovery_error_exponents as draw_recovery_error_exponents
from .recovery.finite_size import draw_recovery_finite_size as draw_recovery_finite_size
from .recovery.gamma import draw_recovery_gamma as draw_recovery_gamma
from .recovery.mse import draw_recovery_mse as draw_recovery_mse
from .recovery.perturbation import draw_recovery_perturbation as draw_recovery_perturbation
from .recovery.readouts import draw_recovery_readouts as draw_recovery_readouts
from .recovery.sharp_theory import draw_recovery_sharp_theory as draw_recovery_sharp_theory
from .recovery.spectrum import draw_recovery_spectrum as draw_recovery_spectrum
from .style import save_figure as save_figure

__all__ = [
    "DepthStudies",
    "draw_claims",
    "draw_curvature_alpha_by_layer",
    "draw_curvature_audit",
    "draw_curvature_controls",
    "draw_curvature_decomposition",
    "draw_curvature_factors",
    "draw_curvature_independence",
    "draw_curvature_ladder",
    "draw_curvature_mechanisms",
    "draw_curvature_participation",
    "draw_curvature_power_law",
    "draw_curvature_rank_models",
    "draw_curvature_trajectory",
    "draw_curvature_triangle",
    "draw_curvature_weights",
    "draw_curvature_windows",
    "draw_optimizers_gains",
    "draw_optimizers_layer_rates",
    "draw_optimizers_race",
    "draw_optimizers_responses",
    "draw_recovery_depth",
    "draw_recovery_directions",
    "draw_recovery_error_exponents",
    "draw_recovery_finite_size",
    "draw_recovery_gamma",
    "draw_recovery_mse",
    "draw_recovery_perturbation",
    "draw_recovery_readouts",
    "draw_recovery_sharp_theory",
    "draw_recovery_spectrum",
    "save_figure",
]
