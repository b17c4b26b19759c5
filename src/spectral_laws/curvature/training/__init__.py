"""Training of the networks that are measured."""
