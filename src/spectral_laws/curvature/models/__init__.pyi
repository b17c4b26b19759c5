from .factory import build_model as build_model
from .gpt2 import GPT2 as GPT2
from .mlp import MLP as MLP
from .resnet import ResNet18 as ResNet18
from .resnet import ResNet50 as ResNet50
from .roles import layer_role as layer_role
from .vgg import VGG11 as VGG11
from .vgg import VGG16 as VGG16
from .vit import VisionTransformer as VisionTransformer

__all__ = [
    "GPT2",
    "MLP",
    "VGG11",
    "VGG16",
    "ResNet18",
    "ResNet50",
    "VisionTransformer",
    "build_model",
    "layer_role",
]
