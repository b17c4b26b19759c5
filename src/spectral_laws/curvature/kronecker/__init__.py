"""Kronecker factors, and the ladder from exact to Kronecker curvature."""
