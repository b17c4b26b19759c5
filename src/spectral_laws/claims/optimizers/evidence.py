"""How the claims of the curvature paper on optimizers are measured."""

from functools import partial

from spectral_laws.claims.evidence import Evidence
from spectral_laws.claims.optimizers.race import measure_gain
from spectral_laws.claims.optimizers.rates import measure_best_rate, measure_rate_gain

_SPECTRAL_NEWTON = "spectral_newton_2"
"""Of the exponents raced the paper's default, and that of convolutional layers."""

_over_adamw = partial(measure_gain, baseline="adamw")
_of_spectral_newton = partial(measure_gain, method=_SPECTRAL_NEWTON)

OPTIMIZERS: dict[str, Evidence] = {
    "B14": Evidence(
        partial(_over_adamw, method=_SPECTRAL_NEWTON),
        {
            "alpha = 1": partial(_over_adamw, method="spectral_newton_1"),
            "measured alpha of each layer (its measurement is in no budget)": partial(
                _over_adamw, method="spectral_newton_measured"
            ),
            "Muon minus AdamW": partial(_over_adamw, method="muon"),
            "SOAP minus AdamW": partial(_over_adamw, method="soap"),
            "SGD minus AdamW": partial(_over_adamw, method="sgd"),
            "SGD without momentum minus AdamW": partial(_over_adamw, method="sgd_by_damping"),
            "alpha = 2 minus Muon": partial(_of_spectral_newton, baseline="muon"),
            "alpha = 2 minus SGD": partial(_of_spectral_newton, baseline="sgd"),
        },
    ),
    "B15": Evidence(
        measure_rate_gain,
        {
            "best positive exponent, a maximum and so biased upwards": measure_best_rate,
            "inverse rates": partial(measure_rate_gain, variant="inverse"),
            "s exchanged at random among layers": partial(measure_rate_gain, variant="random"),
        },
    ),
}
"""How each claim on optimizers is measured."""
