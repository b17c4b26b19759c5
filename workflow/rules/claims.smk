# The referee's table: one row per claim, with verdict; and the configuration that made it.
rule evaluate_claims:
    input:
        source=sources("evaluate_claims.py"),
        metrics=f"{RESULTS}/recovery/metrics.parquet",
        directions=f"{RESULTS}/recovery/directions.parquet",
        thresholds=f"{RESULTS}/recovery/thresholds.parquet",
        baselines=f"{RESULTS}/recovery/baselines.parquet",
        perturbation=f"{RESULTS}/recovery/perturbation.parquet",
        error_exponents=f"{RESULTS}/recovery/error_exponents.parquet",
        exponents=f"{RESULTS}/curvature/exponents.parquet",
    output:
        csv=f"{RESULTS}/claims.csv",
        markdown=f"{RESULTS}/claims.md",
    log:
        f"{LOGS}/evaluate_claims.log",
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/evaluate_claims.py --metrics {input.metrics}"
        " --directions {input.directions} --thresholds {input.thresholds}"
        " --baselines {input.baselines} --perturbation {input.perturbation}"
        " --error-exponents {input.error_exponents} --exponents {input.exponents}"
        " --intervals {params.intervals:q} --seed {params.seed}"
        " --csv {output.csv} --markdown {output.markdown} > {log} 2>&1"


rule write_config:
    input:
        source=sources("write_config.py"),
    output:
        f"{RESULTS}/config.yaml",
    log:
        f"{LOGS}/write_config.log",
    resources:
        mem_mb=500,
        runtime=5,
    params:
        config=lambda wildcards: preset_config(wildcards.preset).model_dump_json(),
    shell:
        "{PYTHON} {SCRIPTS}/write_config.py --config {params.config:q} --output {output}"
        " > {log} 2>&1"
