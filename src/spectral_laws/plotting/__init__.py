"""Figures of both parts: one module each, a common style, and byte-identical files."""

import lazy_loader as lazy

from spectral_laws.plotting.plain_matplotlib import import_plainly

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
if not import_plainly():  # `import *` and `help` offer what can be had
    __all__, __dir__ = [], list
