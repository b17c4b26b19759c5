from .load import load_samples as load_samples
from .samples import Samples as Samples

__all__ = ["Samples", "load_samples"]
