"""Typed, frozen settings of every part of the configuration; ``config`` puts them together."""
