from .figures import draw_figure as draw_figure
from .style import save_figure as save_figure

__all__ = ["draw_figure", "save_figure"]
