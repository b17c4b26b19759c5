"""Log-log fits, rank models, bootstrap intervals and participation ratios, for both papers."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
