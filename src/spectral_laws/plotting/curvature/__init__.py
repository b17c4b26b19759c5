"""Figures of loss curvature."""
