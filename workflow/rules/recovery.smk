# Sequential feature recovery: one job per teacher and seed runs all its sample sizes.
TEACHER = "{study}/d{dimension}/seed{replicate}"


def sample_memory(wildcards):
    """MB of a job that keeps samples: their budget, and what everything else takes."""
    return 1500 + preset_config(wildcards.preset).recovery.estimator.memory_mb


def kernel_memory(wildcards):
    """MB of a kernel ridge job: about five n x n matrices in float64."""
    size = preset_config(wildcards.preset).recovery.kernel.max_sample_size
    return 1500 + 5 * 8 * size**2 // 2**20


rule recover_features:
    input:
        source=sources("recover_features.py"),
    output:
        metrics=f"{RESULTS}/recovery/{TEACHER}/metrics.parquet",
        directions=f"{RESULTS}/recovery/{TEACHER}/directions.parquet",
        thresholds=f"{RESULTS}/recovery/{TEACHER}/thresholds.parquet",
    log:
        f"{LOGS}/recover_features/{TEACHER}.log",
    benchmark:
        f"{BENCHMARKS}/recover_features/{TEACHER}.tsv"
    threads: 1
    resources:
        mem_mb=sample_memory,
        runtime=240,
        gpu=gpus,
    params:
        study=settings("recovery.studies.{study}", without=("dimensions", "seeds")),
        estimator=settings("recovery.estimator"),
        evaluation=settings("recovery.evaluation"),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/recover_features.py --study-name {wildcards.study}"
        " --study {params.study:q} --estimator {params.estimator:q}"
        " --evaluation {params.evaluation:q} --dimension {wildcards.dimension}"
        " --replicate {wildcards.replicate} --seed {params.seed} --device {params.device}"
        " --metrics {output.metrics} --directions {output.directions}"
        " --thresholds {output.thresholds} > {log} 2>&1"


rule fit_kernel_ridge:
    input:
        source=sources("fit_kernel_ridge.py"),
    output:
        f"{RESULTS}/recovery/{TEACHER}/kernel.parquet",
    log:
        f"{LOGS}/fit_kernel_ridge/{TEACHER}.log",
    benchmark:
        f"{BENCHMARKS}/fit_kernel_ridge/{TEACHER}.tsv"
    threads: 1
    resources:
        mem_mb=kernel_memory,
        runtime=120,
    params:
        study=settings("recovery.studies.{study}", without=("dimensions", "seeds")),
        evaluation=settings("recovery.evaluation"),
        kernel=settings("recovery.kernel"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_kernel_ridge.py --study-name {wildcards.study}"
        " --study {params.study:q} --evaluation {params.evaluation:q}"
        " --kernel {params.kernel:q} --dimension {wildcards.dimension}"
        " --replicate {wildcards.replicate} --seed {params.seed} --output {output} > {log} 2>&1"


rule compute_spectrum:
    input:
        source=sources("compute_spectrum.py"),
    output:
        f"{RESULTS}/recovery/spectrum.parquet",
    log:
        f"{LOGS}/compute_spectrum.log",
    benchmark:
        f"{BENCHMARKS}/compute_spectrum.tsv"
    threads: 1
    resources:
        mem_mb=sample_memory,
        runtime=60,
        gpu=gpus,
    params:
        point=settings("recovery.spectrum"),
        study=lambda wildcards: settings(
            f"recovery.studies.{preset_config(wildcards.preset).recovery.spectrum.study}",
            without=("dimensions", "seeds"),
        )(wildcards),
        memory_mb=settings("recovery.estimator.memory_mb"),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/compute_spectrum.py --point {params.point:q}"
        " --study {params.study:q} --memory-mb {params.memory_mb} --seed {params.seed}"
        " --device {params.device} --output {output} > {log} 2>&1"


def teachers_of(wildcards):
    """Folders of every teacher of the preset."""
    studies = preset_config(wildcards.preset).recovery.studies
    return [
        f"results/{wildcards.preset}/recovery/{name}/d{dimension}/seed{replicate}"
        for name, study in studies.items()
        for dimension in study.dimensions
        for replicate in range(study.seeds)
    ]


rule collect_recovery:
    input:
        source=sources("collect_tables.py"),
        tables=lambda wildcards: [
            f"{folder}/{wildcards.table}.parquet" for folder in teachers_of(wildcards)
        ],
    output:
        f"{RESULTS}/recovery/{{table}}.parquet",
    log:
        f"{LOGS}/collect_recovery/{{table}}.log",
    wildcard_constraints:
        table="metrics|directions|thresholds|kernel",
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --output {output} {input.tables} > {log} 2>&1"
