"""Spectral Newton, and its race against other optimizers (arXiv:2606.02596)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
