from .claims import draw_claims as draw_claims
from .curvature_alpha_by_layer import draw_curvature_alpha_by_layer as draw_curvature_alpha_by_layer
from .curvature_power_law import draw_curvature_power_law as draw_curvature_power_law
from .curvature_triangle import draw_curvature_triangle as draw_curvature_triangle
from .recovery_directions import draw_recovery_directions as draw_recovery_directions
from .recovery_mse import draw_recovery_mse as draw_recovery_mse
from .recovery_spectrum import draw_recovery_spectrum as draw_recovery_spectrum
from .style import save_figure as save_figure

__all__ = [
    "draw_claims",
    "draw_curvature_alpha_by_layer",
    "draw_curvature_power_law",
    "draw_curvature_triangle",
    "draw_recovery_directions",
    "draw_recovery_mse",
    "draw_recovery_spectrum",
    "save_figure",
]
