# One rule per figure of figures.yaml; a figure reads tables only, so editing it reruns nothing else.
# They are made in a loop because a caption in the report may not depend on a wildcard.


def arguments(figure):
    """Params function: the JSON of what a figure is drawn with besides its tables."""
    return lambda wildcards: json.dumps(
        {name: lookup(wildcards.preset, path) for name, path in figure.params.items()}
    )


for name, figure in load_figures().items():

    rule:
        name:
            f"plot_{name}"
        input:
            source=sources("draw_figure.py", module_path(name)),
            tables=[f"{RESULTS}/{table}.parquet" for table in figure.tables],
        output:
            pdf=f"{FIGURES_OF}/{name}.pdf",
            png=report(
                f"{FIGURES_OF}/{name}.png",
                caption=f"../report/{name}.rst",
                category=PAPERS[name.split("_")[0]],
                subcategory="optimizers" if name.startswith("optimizers") else "figures",
                labels={"figure": figure.title},
            ),
        log:
            f"{LOGS}/plot_{name}.log",
        benchmark:
            f"{BENCHMARKS}/plot_{name}.tsv"
        group:  # one SLURM job per part of the project
            name.split("_")[0]
        resources:
            mem_mb=1500,
            runtime=10,
        params:
            figure=name,
            arguments=arguments(figure),
        shell:
            "{PYTHON} {SCRIPTS}/draw_figure.py {input.tables} --figure {params.figure}"
            " --parameters {params.arguments:q} --pdf {output.pdf} --png {output.png} > {log} 2>&1"
