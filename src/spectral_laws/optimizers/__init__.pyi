from .layer_rates import train_layer_rates as train_layer_rates
from .parameter_groups import describe_groups as describe_groups
from .parameter_groups import parameter_groups as parameter_groups
from .race import Task as Task
from .race import train_method as train_method
from .race import tune_method as tune_method
from .responses import measure_responses as measure_responses
from .spectral_newton import SpectralNewton as SpectralNewton
from .spectral_update import spectral_update as spectral_update

__all__ = [
    "SpectralNewton",
    "Task",
    "describe_groups",
    "measure_responses",
    "parameter_groups",
    "spectral_update",
    "train_layer_rates",
    "train_method",
    "tune_method",
]
