"""Errors whose message is meant for the person who runs the code."""


class SpectralLawsError(Exception):
    """Base of every error that is reported by its message alone, without a traceback."""


class ConfigError(SpectralLawsError):
    """A configuration key or value is wrong; the message names the key."""


class DataError(SpectralLawsError):
    """A file or folder is missing or damaged; the message names it."""


class NumericalError(SpectralLawsError):
    """A computation produced NaN or infinity, or did not converge; the message names it."""


class NoFitError(SpectralLawsError):
    """Too few usable observations for a fit or an interval; the message says how many."""
