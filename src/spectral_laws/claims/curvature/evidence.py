"""How the claims of the curvature paper on the spectra of trained networks are measured.

Judged on the trained networks of the experiment ``architectures``; ablations and training
trajectories on the networks they compare.
"""

from functools import partial

from spectral_laws.claims.curvature.changes import (
    measure_alignment_at_rank,
    measure_alignment_drop,
    measure_hidden_drop,
    measure_trajectory,
    measure_variants,
    measure_width_growth,
)
from spectral_laws.claims.curvature.gap import (
    measure_factor_models,
    measure_gap_correlation,
    measure_gap_slope,
    measure_identity,
    measure_kronecker_correlation,
    measure_layer_correlation,
)
from spectral_laws.claims.curvature.layers import (
    measure_alpha,
    measure_difference_fit,
    measure_lognormal_share,
    measure_participation_bound,
    measure_transfer_control,
    measure_transfer_error,
    measure_weight_tail,
)
from spectral_laws.claims.evidence import Evidence
from spectral_laws.settings.roles import ATTENTION, BLOCK, CONV

_conv_alpha = partial(measure_alpha, roles=CONV, units="convolutional layers")
_separable_alpha = partial(measure_alpha, units="layers", experiment="separable", variant="true")
_head_alpha = partial(measure_alpha, roles=("head",), units="output layers")
_block_alpha = partial(measure_alpha, roles=BLOCK, units="attention and MLP layers")
_gpt2_alpha = partial(measure_alpha, units="layers", variant="gpt2")
_conv_gap = partial(measure_gap_slope, roles=CONV, units="convolutional layers")
_layer_norm = partial(
    measure_variants,
    experiment="layer_norm",
    variants=("layer", "none"),
    column="phi_a",
    magnitude=True,
)
_residual = partial(measure_variants, experiment="residual", column="phi_delta", magnitude=True)
_block_change = partial(measure_variants, column="alpha", roles=BLOCK)
_width = partial(
    measure_variants,
    experiment="width",
    variants=(512.0, 64.0),
    column="participation_ratio",
)
_alpha_change = partial(measure_trajectory, quantity="alpha")
_lognormal_change = partial(measure_trajectory, quantity="lognormal")
_true_factors = "factors of the true Fisher"

CURVATURE: dict[str, Evidence] = {
    "B1": Evidence(
        _conv_alpha,
        {
            "depth-wise convolutions": partial(_separable_alpha, roles=("depthwise_conv",)),
            "point-wise convolutions": partial(_separable_alpha, roles=("pointwise_conv",)),
            "without batch normalisation": partial(
                _conv_alpha, experiment="batch_norm", variant="none"
            ),
        },
    ),
    "B2": Evidence(
        partial(_block_alpha, variant="gpt2"),
        {
            "attention alone": partial(_gpt2_alpha, roles=ATTENTION),
            "down-projections": partial(_gpt2_alpha, roles=("mlp_down",)),
            "up-projections": partial(_gpt2_alpha, roles=("mlp_up",)),
            "vision transformer": partial(_block_alpha, variant="vit_tiny"),
        },
    ),
    "B3": Evidence(
        _head_alpha,
        {
            f"{n} classes": partial(_head_alpha, experiment="classes", variant=float(n))
            for n in (10, 100, 1000)
        },
    ),
    "B4": Evidence(
        measure_difference_fit,
        control={
            "exact curvatures of the same directions": partial(
                measure_difference_fit, column="directional_curvature"
            )
        },
    ),
    "B5": Evidence(partial(measure_identity, column="kronecker_gap")),
    "B6": Evidence(partial(measure_identity, column="identity_gap")),
    "B7": Evidence(
        _layer_norm,
        {
            "layers that read a normalised input": partial(
                _layer_norm, roles=("attention_qkv", "mlp_up", "head")
            )
        },
    ),
    "B8": Evidence(
        partial(_residual, variants=(1.0, 0.0)),
        {"half the skip": partial(_residual, variants=(0.5, 0.0))},
    ),
    "B9": Evidence(
        measure_alignment_drop,
        {
            "last direction of a head's gradient": measure_alignment_at_rank,
            "hidden layers": measure_hidden_drop,
        },
    ),
    "B10": Evidence(
        _conv_gap,
        {
            _true_factors: partial(_conv_gap, kronecker="kronecker_true"),
            "depth-wise convolutions": partial(
                measure_gap_slope, roles=("depthwise_conv",), units="layers", experiment="separable"
            ),
        },
    ),
    "B11": Evidence(
        measure_transfer_error,
        {
            "disjoint halves": partial(measure_transfer_control, column="error_halves"),
            "s repeated on the other half": partial(
                measure_transfer_control, column="error_repeat", judged=False
            ),
        },
        {
            "h permuted": partial(measure_transfer_control, column="error_permuted"),
            "least squares alone": partial(measure_transfer_control, column="error_free"),
        },
    ),
    "B12": Evidence(measure_lognormal_share),
    "B13": Evidence(measure_participation_bound),
    "B16": Evidence(
        measure_gap_correlation,
        {
            _true_factors: partial(measure_gap_correlation, kronecker="kronecker_true"),
            "within each training": partial(measure_gap_correlation, within=True),
        },
    ),
    "B17": Evidence(
        partial(_alpha_change, roles=CONV),
        {"heads": partial(_alpha_change, roles=("head",)), "all layers": _alpha_change},
    ),
    "B18": Evidence(
        partial(
            _block_change, experiment="task", variants=("classification", "language_modelling")
        ),
        {
            "10 minus 100 outputs, vision transformer": partial(
                _block_change, experiment="outputs", variants=(10.0, 100.0)
            ),
            "without layer normalisation minus with, vision transformer": partial(
                _block_change, experiment="layer_norm", variants=("none", "layer")
            ),
        },
    ),
    "B19": Evidence(
        partial(_width, first_layer=True),
        {"slope over all widths, per factor 8": measure_width_growth, "all layers": _width},
    ),
    "B20": Evidence(
        _lognormal_change,
        {"convolutional layers": partial(_lognormal_change, roles=CONV)},
    ),
    "B21": Evidence(
        measure_kronecker_correlation,
        {
            _true_factors: partial(measure_kronecker_correlation, kronecker="kronecker_true"),
            "median of each layer's own": measure_layer_correlation,
            "rank model of a factor is the gradient's": measure_factor_models,
        },
    ),
    "B22": Evidence(
        measure_weight_tail,
        {
            "exponent of the eigenvalues' density": partial(
                measure_weight_tail, column="tail_exponent"
            )
        },
    ),
}
"""How each claim on spectra is measured; B14 and B15 are about optimizers."""
