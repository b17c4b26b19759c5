# One rule per figure; a figure reads tables only, so editing it reruns nothing else.

TITLES = {
    "recovery_mse": "Test error and overlap against sample size",
    "recovery_gamma": "Decay of the strengths",
    "recovery_directions": "Recovery of single directions",
    "recovery_readouts": "Nonlinear readouts",
    "recovery_spectrum": "Spectrum of the moment matrix",
    "recovery_sharp_theory": "Sharp theory against measurement",
    "recovery_finite_size": "Finite size",
    "recovery_depth": "Advantage of depth",
    "recovery_perturbation": "Perturbation of eigenvectors",
    "recovery_error_exponents": "Exponent of the test error",
    "curvature_power_law": "Curvature against singular value",
    "curvature_triangle": "Triangle of exponents",
    "curvature_alpha_by_layer": "Exponent alpha of every layer",
    "curvature_ladder": "Curvature ladder",
    "curvature_decomposition": "What makes alpha",
    "curvature_independence": "How much of s = alpha gamma is evidence",
    "curvature_mechanisms": "Mechanisms, each with its control",
    "curvature_trajectory": "During training",
    "curvature_participation": "Directions that carry the curvature",
    "curvature_rank_models": "Law of the singular values in rank",
    "curvature_factors": "Kronecker factors",
    "curvature_controls": "Controls of the measurement",
    "curvature_windows": "Alpha from parts of the spectrum",
    "curvature_weights": "Tails of the weights",
    "optimizers_race": "Race of the optimizers",
    "optimizers_gains": "Gains over AdamW",
    "optimizers_responses": "Update spectra",
    "optimizers_layer_rates": "Learning rates per layer",
    "curvature_audit": "Audit of the author's files",
    "claims": "Every claim and its verdict",
}
"""Titles of the figures in the report."""
FIGURES = [
    name
    for name in TITLES
    if name != "curvature_audit" or ACTIVE.curvature.reference is not None  # the author's files
]


def reported_figure(name):
    """The PNG of a figure, with its caption, paper and title in the report."""
    return report(
        f"{FIGURES_OF}/{name}.png",
        caption=f"../report/{name}.rst",
        category=PAPERS[name.split("_")[0]],
        subcategory="optimizers" if name.startswith("optimizers") else "figures",
        labels={"figure": TITLES[name]},
    )


rule plot_recovery_mse:
    input:
        source=sources("plot_recovery_mse.py"),
        metrics=f"{RESULTS}/recovery/metrics.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_mse.pdf",
        png=reported_figure("recovery_mse"),
    log:
        f"{LOGS}/plot_recovery_mse.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_mse.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_mse.py --metrics {input.metrics}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_gamma:
    input:
        source=sources("plot_recovery_gamma.py"),
        metrics=f"{RESULTS}/recovery/metrics.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_gamma.pdf",
        png=reported_figure("recovery_gamma"),
    log:
        f"{LOGS}/plot_recovery_gamma.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_gamma.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_gamma.py --metrics {input.metrics}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_directions:
    input:
        source=sources("plot_recovery_directions.py"),
        directions=f"{RESULTS}/recovery/directions.parquet",
        thresholds=f"{RESULTS}/recovery/thresholds.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_directions.pdf",
        png=reported_figure("recovery_directions"),
    log:
        f"{LOGS}/plot_recovery_directions.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_directions.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_directions.py --directions {input.directions}"
        " --thresholds {input.thresholds} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_readouts:
    input:
        source=sources("plot_recovery_readouts.py"),
        metrics=f"{RESULTS}/recovery/metrics.parquet",
        thresholds=f"{RESULTS}/recovery/thresholds.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_readouts.pdf",
        png=reported_figure("recovery_readouts"),
    log:
        f"{LOGS}/plot_recovery_readouts.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_readouts.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_readouts.py --metrics {input.metrics}"
        " --thresholds {input.thresholds} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_spectrum:
    input:
        source=sources("plot_recovery_spectrum.py"),
        spectrum=f"{RESULTS}/recovery/spectrum.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_spectrum.pdf",
        png=reported_figure("recovery_spectrum"),
    log:
        f"{LOGS}/plot_recovery_spectrum.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_spectrum.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_spectrum.py --spectrum {input.spectrum}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_sharp_theory:
    input:
        source=sources("plot_recovery_sharp_theory.py"),
        directions=f"{RESULTS}/recovery/directions.parquet",
        thresholds=f"{RESULTS}/recovery/thresholds.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_sharp_theory.pdf",
        png=reported_figure("recovery_sharp_theory"),
    log:
        f"{LOGS}/plot_recovery_sharp_theory.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_sharp_theory.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_sharp_theory.py --directions {input.directions}"
        " --thresholds {input.thresholds} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_finite_size:
    input:
        source=sources("plot_recovery_finite_size.py"),
        population=f"{RESULTS}/recovery/population.parquet",
        directions=f"{RESULTS}/recovery/directions.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_finite_size.pdf",
        png=reported_figure("recovery_finite_size"),
    log:
        f"{LOGS}/plot_recovery_finite_size.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_finite_size.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
        resamples=settings("intervals.resamples"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_finite_size.py --population {input.population}"
        " --directions {input.directions} --confidence {params.confidence} --resamples {params.resamples}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_depth:
    input:
        source=sources("plot_recovery_depth.py"),
        metrics=f"{RESULTS}/recovery/metrics.parquet",
        directions=f"{RESULTS}/recovery/directions.parquet",
        baselines=f"{RESULTS}/recovery/baselines.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_depth.pdf",
        png=reported_figure("recovery_depth"),
    log:
        f"{LOGS}/plot_recovery_depth.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_depth.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
        resamples=settings("intervals.resamples"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_depth.py --metrics {input.metrics}"
        " --directions {input.directions} --baselines {input.baselines} --confidence {params.confidence} --resamples {params.resamples}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_perturbation:
    input:
        source=sources("plot_recovery_perturbation.py"),
        perturbation=f"{RESULTS}/recovery/perturbation.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_perturbation.pdf",
        png=reported_figure("recovery_perturbation"),
    log:
        f"{LOGS}/plot_recovery_perturbation.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_perturbation.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_perturbation.py --perturbation {input.perturbation}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_recovery_error_exponents:
    input:
        source=sources("plot_recovery_error_exponents.py"),
        error_exponents=f"{RESULTS}/recovery/error_exponents.parquet",
        metrics=f"{RESULTS}/recovery/metrics.parquet",
    output:
        pdf=f"{FIGURES_OF}/recovery_error_exponents.pdf",
        png=reported_figure("recovery_error_exponents"),
    log:
        f"{LOGS}/plot_recovery_error_exponents.log",
    benchmark:
        f"{BENCHMARKS}/plot_recovery_error_exponents.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
        resamples=settings("intervals.resamples"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_recovery_error_exponents.py --error-exponents {input.error_exponents}"
        " --metrics {input.metrics} --confidence {params.confidence} --resamples {params.resamples}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_power_law:
    input:
        source=sources("plot_curvature_power_law.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_power_law.pdf",
        png=reported_figure("curvature_power_law"),
    log:
        f"{LOGS}/plot_curvature_power_law.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_power_law.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        top_k=settings("curvature.measurement.top_k"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_power_law.py --spectra {input.spectra}"
        " --exponents {input.exponents} --experiments {input.experiments} --top-k {params.top_k}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_triangle:
    input:
        source=sources("plot_curvature_triangle.py"),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_triangle.pdf",
        png=reported_figure("curvature_triangle"),
    log:
        f"{LOGS}/plot_curvature_triangle.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_triangle.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_triangle.py --exponents {input.exponents}"
        " --experiments {input.experiments}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_alpha_by_layer:
    input:
        source=sources("plot_curvature_alpha_by_layer.py"),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_alpha_by_layer.pdf",
        png=reported_figure("curvature_alpha_by_layer"),
    log:
        f"{LOGS}/plot_curvature_alpha_by_layer.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_alpha_by_layer.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_alpha_by_layer.py --exponents {input.exponents}"
        " --experiments {input.experiments} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_ladder:
    input:
        source=sources("plot_curvature_ladder.py"),
        ladder=f"{RESULTS}/curvature/ladder.parquet",
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_ladder.pdf",
        png=reported_figure("curvature_ladder"),
    log:
        f"{LOGS}/plot_curvature_ladder.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_ladder.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_ladder.py --ladder {input.ladder}"
        " --exponents {input.exponents} --experiments {input.experiments} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_decomposition:
    input:
        source=sources("plot_curvature_decomposition.py"),
        decomposition=f"{RESULTS}/curvature/decomposition.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_decomposition.pdf",
        png=reported_figure("curvature_decomposition"),
    log:
        f"{LOGS}/plot_curvature_decomposition.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_decomposition.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_decomposition.py --decomposition {input.decomposition}"
        " --experiments {input.experiments} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_independence:
    input:
        source=sources("plot_curvature_independence.py"),
        independence=f"{RESULTS}/curvature/independence.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_independence.pdf",
        png=reported_figure("curvature_independence"),
    log:
        f"{LOGS}/plot_curvature_independence.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_independence.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_independence.py --independence {input.independence}"
        " --experiments {input.experiments} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_mechanisms:
    input:
        source=sources("plot_curvature_mechanisms.py"),
        experiments=f"{RESULTS}/curvature/experiments.parquet",
        spectra=f"{RESULTS}/curvature/spectra.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_mechanisms.pdf",
        png=reported_figure("curvature_mechanisms"),
    log:
        f"{LOGS}/plot_curvature_mechanisms.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_mechanisms.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_mechanisms.py --experiments {input.experiments}"
        " --spectra {input.spectra} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_trajectory:
    input:
        source=sources("plot_curvature_trajectory.py"),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_trajectory.pdf",
        png=reported_figure("curvature_trajectory"),
    log:
        f"{LOGS}/plot_curvature_trajectory.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_trajectory.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_trajectory.py --exponents {input.exponents}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_participation:
    input:
        source=sources("plot_curvature_participation.py"),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_participation.pdf",
        png=reported_figure("curvature_participation"),
    log:
        f"{LOGS}/plot_curvature_participation.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_participation.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_participation.py --exponents {input.exponents}"
        " --experiments {input.experiments} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_rank_models:
    input:
        source=sources("plot_curvature_rank_models.py"),
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        spectra=f"{RESULTS}/curvature/spectra.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_rank_models.pdf",
        png=reported_figure("curvature_rank_models"),
    log:
        f"{LOGS}/plot_curvature_rank_models.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_rank_models.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        top_k=settings("curvature.measurement.top_k"),
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_rank_models.py --exponents {input.exponents}"
        " --spectra {input.spectra} --experiments {input.experiments} --top-k {params.top_k}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_factors:
    input:
        source=sources("plot_curvature_factors.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
        factor_models=f"{RESULTS}/curvature/factor_models.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_factors.pdf",
        png=reported_figure("curvature_factors"),
    log:
        f"{LOGS}/plot_curvature_factors.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_factors.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        top_k=settings("curvature.measurement.top_k"),
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_factors.py --spectra {input.spectra}"
        " --factor-models {input.factor_models} --experiments {input.experiments}"
        " --top-k {params.top_k} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_controls:
    input:
        source=sources("plot_curvature_controls.py"),
        finite_differences=f"{RESULTS}/curvature/finite_differences.parquet",
        eigenvalues=f"{RESULTS}/curvature/eigenvalues.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_controls.pdf",
        png=reported_figure("curvature_controls"),
    log:
        f"{LOGS}/plot_curvature_controls.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_controls.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_controls.py"
        " --finite-differences {input.finite_differences} --eigenvalues {input.eigenvalues}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_windows:
    input:
        source=sources("plot_curvature_windows.py"),
        windows=f"{RESULTS}/curvature/windows.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_windows.pdf",
        png=reported_figure("curvature_windows"),
    log:
        f"{LOGS}/plot_curvature_windows.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_windows.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_windows.py --windows {input.windows}"
        " --experiments {input.experiments} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_weights:
    input:
        source=sources("plot_curvature_weights.py"),
        weights=f"{RESULTS}/curvature/weights.parquet",
        exponents=f"{RESULTS}/curvature/exponents.parquet",
        experiments=f"{RESULTS}/curvature/experiments.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_weights.pdf",
        png=reported_figure("curvature_weights"),
    log:
        f"{LOGS}/plot_curvature_weights.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_weights.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_weights.py --weights {input.weights}"
        " --exponents {input.exponents} --experiments {input.experiments}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_optimizers_race:
    input:
        source=sources("plot_optimizers_race.py"),
        race=f"{RESULTS}/optimizers/race.parquet",
        race_times=f"{RESULTS}/optimizers/race_times.parquet",
    output:
        pdf=f"{FIGURES_OF}/optimizers_race.pdf",
        png=reported_figure("optimizers_race"),
    log:
        f"{LOGS}/plot_optimizers_race.log",
    benchmark:
        f"{BENCHMARKS}/plot_optimizers_race.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_optimizers_race.py --race {input.race}"
        " --race-times {input.race_times} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_optimizers_gains:
    input:
        source=sources("plot_optimizers_gains.py"),
        race=f"{RESULTS}/optimizers/race.parquet",
        tuning=f"{RESULTS}/optimizers/tuning.parquet",
        tuning_times=f"{RESULTS}/optimizers/tuning_times.parquet",
    output:
        pdf=f"{FIGURES_OF}/optimizers_gains.pdf",
        png=reported_figure("optimizers_gains"),
    log:
        f"{LOGS}/plot_optimizers_gains.log",
    benchmark:
        f"{BENCHMARKS}/plot_optimizers_gains.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_optimizers_gains.py --race {input.race}"
        " --tuning {input.tuning} --tuning-times {input.tuning_times} --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_optimizers_responses:
    input:
        source=sources("plot_optimizers_responses.py"),
        responses=f"{RESULTS}/optimizers/responses.parquet",
    output:
        pdf=f"{FIGURES_OF}/optimizers_responses.pdf",
        png=reported_figure("optimizers_responses"),
    log:
        f"{LOGS}/plot_optimizers_responses.log",
    benchmark:
        f"{BENCHMARKS}/plot_optimizers_responses.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/plot_optimizers_responses.py --responses {input.responses}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_optimizers_layer_rates:
    input:
        source=sources("plot_optimizers_layer_rates.py"),
        layer_rates=f"{RESULTS}/optimizers/layer_rates.parquet",
    output:
        pdf=f"{FIGURES_OF}/optimizers_layer_rates.pdf",
        png=reported_figure("optimizers_layer_rates"),
    log:
        f"{LOGS}/plot_optimizers_layer_rates.log",
    benchmark:
        f"{BENCHMARKS}/plot_optimizers_layer_rates.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        confidence=settings("intervals.confidence"),
    shell:
        "{PYTHON} {SCRIPTS}/plot_optimizers_layer_rates.py --layer-rates {input.layer_rates}"
        " --confidence {params.confidence}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_curvature_audit:
    input:
        source=sources("plot_curvature_audit.py"),
        audit=f"{RESULTS}/curvature/audit.parquet",
    output:
        pdf=f"{FIGURES_OF}/curvature_audit.pdf",
        png=reported_figure("curvature_audit"),
    log:
        f"{LOGS}/plot_curvature_audit.log",
    benchmark:
        f"{BENCHMARKS}/plot_curvature_audit.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/plot_curvature_audit.py --audit {input.audit}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"


rule plot_claims:
    input:
        source=sources("plot_claims.py"),
        claims=f"{RESULTS}/claim_measurements.parquet",
    output:
        pdf=f"{FIGURES_OF}/claims.pdf",
        png=reported_figure("claims"),
    log:
        f"{LOGS}/plot_claims.log",
    benchmark:
        f"{BENCHMARKS}/plot_claims.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/plot_claims.py --claims {input.claims}"
        " --pdf {output.pdf} --png {output.png} > {log} 2>&1"
