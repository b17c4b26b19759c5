"""Measurements of the claims on the race of the optimizers."""
