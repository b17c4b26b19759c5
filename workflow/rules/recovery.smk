# Sequential feature recovery: one job runs all sample sizes of a batch of teachers.
TEACHERS = "{study}/d{dimension}/seeds{first}-{last}"


def sample_memory(wildcards):
    """MB of a job that keeps samples: their budget, and what everything else takes."""
    return 1500 + preset_config(wildcards.preset).recovery.estimator.memory_mb


def baseline_memory(wildcards):
    """MB of a job of baselines: about five n x n matrices in float64."""
    size = preset_config(wildcards.preset).recovery.baselines.max_sample_size
    return 1500 + 5 * 8 * size**2 // 2**20


def batches_of(preset, name):
    """Folders of the teachers of a study, `recovery.batch` of them in each."""
    settings = preset_config(preset).recovery
    study = settings.studies[name]
    starts = range(0, study.seeds, settings.batch)
    return [
        f"results/{preset}/recovery/{name}/d{dimension}/seeds{first}-{last}"
        for dimension in study.dimensions
        for first in starts
        for last in [min(first + settings.batch, study.seeds) - 1]
    ]


def tables_of_teachers(wildcards):
    """The tables of every batch of the preset that has them."""
    settings = preset_config(wildcards.preset).recovery
    names = settings.baselines.studies if wildcards.table == "baselines" else settings.studies
    return [
        f"{folder}/{wildcards.table}.parquet"
        for name in names
        for folder in batches_of(wildcards.preset, name)
    ]


def perturbation_tables(wildcards):
    """One table per study of the perturbation."""
    names = preset_config(wildcards.preset).recovery.perturbation
    return [f"results/{wildcards.preset}/recovery/perturbation/{name}.parquet" for name in names]


rule recover_features:
    input:
        source=sources("recover_features.py"),
    output:
        metrics=f"{RESULTS}/recovery/{TEACHERS}/metrics.parquet",
        directions=f"{RESULTS}/recovery/{TEACHERS}/directions.parquet",
        thresholds=f"{RESULTS}/recovery/{TEACHERS}/thresholds.parquet",
    log:
        f"{LOGS}/recover_features/{TEACHERS}.log",
    benchmark:
        f"{BENCHMARKS}/recover_features/{TEACHERS}.tsv"
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
        " --first {wildcards.first} --last {wildcards.last} --seed {params.seed} --device {params.device}"
        " --metrics {output.metrics} --directions {output.directions}"
        " --thresholds {output.thresholds} > {log} 2>&1"


rule fit_baselines:
    input:
        source=sources("fit_baselines.py"),
    output:
        f"{RESULTS}/recovery/{TEACHERS}/baselines.parquet",
    log:
        f"{LOGS}/fit_baselines/{TEACHERS}.log",
    benchmark:
        f"{BENCHMARKS}/fit_baselines/{TEACHERS}.tsv"
    threads: 1
    resources:
        mem_mb=baseline_memory,
        runtime=240,
    params:
        study=settings("recovery.studies.{study}", without=("dimensions", "seeds")),
        evaluation=settings("recovery.evaluation"),
        baselines=settings("recovery.baselines", without=("studies",)),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_baselines.py --study-name {wildcards.study}"
        " --study {params.study:q} --evaluation {params.evaluation:q}"
        " --baselines {params.baselines:q} --dimension {wildcards.dimension}"
        " --first {wildcards.first} --last {wildcards.last} --seed {params.seed}"
        " --output {output} > {log} 2>&1"


rule compute_spectrum:
    input:
        source=sources("compute_spectrum.py"),
    output:
        reported_table("recovery/spectrum"),
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


rule measure_perturbation:
    input:
        source=sources("measure_perturbation.py"),
    output:
        f"{RESULTS}/recovery/perturbation/{{study}}.parquet",
    log:
        f"{LOGS}/measure_perturbation/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/measure_perturbation/{{study}}.tsv"
    threads: 1
    resources:
        mem_mb=sample_memory,
        runtime=120,
    params:
        study=settings("recovery.perturbation.{study}"),
        memory_mb=settings("recovery.estimator.memory_mb"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/measure_perturbation.py --study-name {wildcards.study}"
        " --study {params.study:q} --memory-mb {params.memory_mb} --seed {params.seed}"
        " --output {output} > {log} 2>&1"


rule compute_population:
    input:
        source=sources("compute_population.py"),
    output:
        reported_table("recovery/population"),
    log:
        f"{LOGS}/compute_population.log",
    benchmark:
        f"{BENCHMARKS}/compute_population.tsv"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        population=settings("recovery.population"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/compute_population.py --population {params.population:q}"
        " --seed {params.seed} --output {output} > {log} 2>&1"


rule predict_exponents:
    input:
        source=sources("predict_exponents.py"),
    output:
        reported_table("recovery/error_exponents"),
    log:
        f"{LOGS}/predict_exponents.log",
    benchmark:
        f"{BENCHMARKS}/predict_exponents.tsv"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        exponents=settings("recovery.error_exponents"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/predict_exponents.py --exponents {params.exponents:q}"
        " --seed {params.seed} --output {output} > {log} 2>&1"


rule collect_recovery:
    input:
        source=sources("collect_tables.py"),
        tables=lambda wildcards: (
            perturbation_tables(wildcards)
            if wildcards.table == "perturbation"
            else tables_of_teachers(wildcards)
        ),
    output:
        reported_table("recovery/{table}"),
    log:
        f"{LOGS}/collect_recovery/{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/collect_recovery/{{table}}.tsv"
    wildcard_constraints:
        table="metrics|directions|thresholds|baselines|perturbation",
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --schema recovery/{wildcards.table} --output {output}"
        " {input.tables} > {log} 2>&1"
