"""Figures of feature recovery."""
