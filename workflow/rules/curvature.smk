# Loss curvature along gradient singular directions: data, training, measurement, exponents.
NETWORK = "{model}/seed{replicate}"


rule prepare_data:
    input:
        source=sources("prepare_data.py"),
    output:
        f"{RESULTS}/curvature/data.safetensors",
    log:
        f"{LOGS}/prepare_data.log",
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        data=settings("curvature.data"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/prepare_data.py --data {params.data:q} --seed {params.seed}"
        " --output {output} > {log} 2>&1"


rule train_model:
    input:
        source=sources("train_model.py"),
        data=f"{RESULTS}/curvature/data.safetensors",
    output:
        checkpoint=f"{RESULTS}/curvature/{NETWORK}/checkpoint.safetensors",
        history=f"{RESULTS}/curvature/{NETWORK}/history.parquet",
    log:
        f"{LOGS}/train_model/{NETWORK}.log",
    benchmark:
        f"{BENCHMARKS}/train_model/{NETWORK}.tsv"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=720,
        gpu=gpus,
    params:
        model=settings("curvature.models.{model}"),
        training=settings("curvature.training"),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/train_model.py --model-name {wildcards.model}"
        " --model {params.model:q} --training {params.training:q} --data-file {input.data}"
        " --replicate {wildcards.replicate} --seed {params.seed} --device {params.device}"
        " --scratch scratch --checkpoint {output.checkpoint} --history {output.history}"
        " > {log} 2>&1"


rule measure_curvature:
    input:
        source=sources("measure_curvature.py"),
        data=f"{RESULTS}/curvature/data.safetensors",
        checkpoint=f"{RESULTS}/curvature/{NETWORK}/checkpoint.safetensors",
    output:
        f"{RESULTS}/curvature/{NETWORK}/spectra.parquet",
    log:
        f"{LOGS}/measure_curvature/{NETWORK}.log",
    benchmark:
        f"{BENCHMARKS}/measure_curvature/{NETWORK}.tsv"
    threads: 1
    resources:
        mem_mb=3500,
        runtime=240,
        gpu=gpus,
    params:
        model=settings("curvature.models.{model}"),
        measurement=settings("curvature.measurement"),
        seed=settings("seed"),
        device=settings("device"),
    shell:
        "{PYTHON} {SCRIPTS}/measure_curvature.py --model-name {wildcards.model}"
        " --model {params.model:q} --measurement {params.measurement:q}"
        " --data-file {input.data} --checkpoint {input.checkpoint}"
        " --replicate {wildcards.replicate} --seed {params.seed} --device {params.device}"
        " --output {output} > {log} 2>&1"


def networks_of(wildcards):
    """Folders of every trained network of the preset."""
    curvature = preset_config(wildcards.preset).curvature
    return [
        f"results/{wildcards.preset}/curvature/{name}/seed{replicate}"
        for name in curvature.models
        for replicate in range(curvature.seeds)
    ]


rule collect_curvature:
    input:
        source=sources("collect_tables.py"),
        tables=lambda wildcards: [
            f"{folder}/{wildcards.table}.parquet" for folder in networks_of(wildcards)
        ],
    output:
        f"{RESULTS}/curvature/{{table}}.parquet",
    log:
        f"{LOGS}/collect_curvature/{{table}}.log",
    wildcard_constraints:
        table="spectra|history",
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} {SCRIPTS}/collect_tables.py --output {output} {input.tables} > {log} 2>&1"


rule fit_exponents:
    input:
        source=sources("fit_exponents.py"),
        spectra=f"{RESULTS}/curvature/spectra.parquet",
    output:
        f"{RESULTS}/curvature/exponents.parquet",
    log:
        f"{LOGS}/fit_exponents.log",
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        intervals=settings("intervals"),
        seed=settings("seed"),
    shell:
        "{PYTHON} {SCRIPTS}/fit_exponents.py --spectra {input.spectra}"
        " --intervals {params.intervals:q} --seed {params.seed} --output {output} > {log} 2>&1"
