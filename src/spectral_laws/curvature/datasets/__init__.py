"""Data sets as arrays: readers of image files, generators, and text."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
