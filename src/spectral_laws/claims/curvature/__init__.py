"""Measurements of the claims on loss curvature."""
