"""What the paper's text, the author's raw result files and this project say, side by side."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
