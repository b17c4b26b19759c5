# The referee's table: every measurement of every claim, with verdict; and the configuration.
CLAIM_TABLES = sorted({table for claim in load_claims() for table in claim.tables})


rule evaluate_claims:
    input:
        source=sources("evaluate_claims.py"),
        tables=[f"{RESULTS}/{name}.parquet" for name in CLAIM_TABLES],
    output:
        f"{RESULTS}/claim_measurements.parquet",
    log:
        f"{LOGS}/evaluate_claims.log",
    benchmark:
        f"{BENCHMARKS}/evaluate_claims.tsv"
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/evaluate_claims.py {input.tables}"
        " --intervals {params.intervals:q} --seed {params.seed} --output {output} > {log} 2>&1"


rule render_claims:
    input:
        source=sources("render_claims.py"),
        claims=f"{RESULTS}/claim_measurements.parquet",
    output:
        csv=f"{RESULTS}/claims.csv",
        markdown=f"{RESULTS}/claims.md",
        html=f"{RESULTS}/claims.html",
    log:
        f"{LOGS}/render_claims.log",
    benchmark:
        f"{BENCHMARKS}/render_claims.tsv"
    resources:
        mem_mb=1500,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/render_claims.py --claims {input.claims} --preset {wildcards.preset}"
        " --csv {output.csv} --markdown {output.markdown} --html {output.html} > {log} 2>&1"


rule write_config:
    input:
        source=sources("write_config.py"),
    output:
        f"{RESULTS}/config.yaml",
    log:
        f"{LOGS}/write_config.log",
    benchmark:
        f"{BENCHMARKS}/write_config.tsv"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        config=lambda wildcards: preset_config(wildcards.preset).model_dump_json(),
    shell:
        "{PYTHON} {SCRIPTS}/write_config.py --config {params.config:q} --output {output}"
        " > {log} 2>&1"


rule collect_provenance:
    input:
        source=sources("collect_provenance.py"),
        files=lambda wildcards: products(wildcards.preset),
        texts=[
            f"{RESULTS}/{name}"
            for name in (
                "claim_measurements.parquet",
                "claims.csv",
                "claims.md",
                "claims.html",
                "config.yaml",
            )
        ],
    output:
        f"{RESULTS}/provenance.json",
    log:
        f"{LOGS}/collect_provenance.log",
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        benchmarks=BENCHMARKS,
        logs=LOGS,
    shell:
        "{PYTHON} {SCRIPTS}/collect_provenance.py {input.files} {input.texts} --benchmarks {params.benchmarks}"
        " --logs {params.logs} --output {output} > {log} 2>&1"
