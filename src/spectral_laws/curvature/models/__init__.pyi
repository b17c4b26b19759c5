from .factory import build_model as build_model
from .mlp import MLP as MLP
from .resnet import ResNet18 as ResNet18

__all__ = ["MLP", "ResNet18", "build_model"]
