from .claims import draw_claims as draw_claims
from .curvature_alpha_by_layer import draw_curvature_alpha_by_layer as draw_curvature_alpha_by_layer
from .curvature_power_law import draw_curvature_power_law as draw_curvature_power_law
from .curvature_triangle import draw_curvature_triangle as draw_curvature_triangle
from .recovery_depth import DepthStudies as DepthStudies
from .recovery_depth import draw_recovery_depth as draw_recovery_depth
from .recovery_directions import draw_recovery_directions as draw_recovery_directions
from .recovery_error_exponents import draw_recovery_error_exponents as draw_recovery_error_exponents
from .recovery_finite_size import draw_recovery_finite_size as draw_recovery_finite_size
from .recovery_gamma import draw_recovery_gamma as draw_recovery_gamma
from .recovery_mse import draw_recovery_mse as draw_recovery_mse
from .recovery_perturbation import draw_recovery_perturbation as draw_recovery_perturbation
from .recovery_readouts import draw_recovery_readouts as draw_recovery_readouts
from .recovery_sharp_theory import draw_recovery_sharp_theory as draw_recovery_sharp_theory
from .recovery_spectrum import draw_recovery_spectrum as draw_recovery_spectrum
from .style import save_figure as save_figure

__all__ = [
    "DepthStudies",
    "draw_claims",
    "draw_curvature_alpha_by_layer",
    "draw_curvature_power_law",
    "draw_curvature_triangle",
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
