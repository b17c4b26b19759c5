"""Measurements of the claims on feature recovery."""
