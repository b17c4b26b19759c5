"""Figures of the race of the optimizers."""
