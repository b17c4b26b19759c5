"""Measure how spectra set power laws in learning.

``recovery``: sequential feature recovery by a layer-wise spectral method (arXiv:2605.14567).
``curvature``: loss curvature along the singular directions of gradients (arXiv:2606.02596).
``optimizers``: Spectral Newton, which that curvature suggests, and its race against others.
"""

__version__ = "0.2.0"
