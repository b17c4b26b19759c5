"""Figures of both parts: one module each, a common style, and byte-identical files."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
