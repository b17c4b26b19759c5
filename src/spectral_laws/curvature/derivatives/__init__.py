"""Gradients and directional curvatures, by exact differentiation."""
