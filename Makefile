# make reproduce   everything of one preset: PRESET=laptop (default), smoke or paper
#                  rerun the same command to resume an interrupted run
# make report      one HTML file of a finished run: claims, figures, tables, rules, code
# make verify      are the figures from the tables on disk, nothing damaged, limits kept?
# make test        the whole test suite
# make test-fast   the tests that start no process and take no seconds
# make check       style, types and dry runs
# make docs        schema of config.yaml; README's claims, docs/gallery, docs/pipeline.svg from the
#                  laptop run

PYTHON ?= python3
PRESET ?= laptop
CORES ?= 2
BIN := .venv/bin
CONFIGFILE := $(if $(subst laptop,,$(PRESET)),--configfile config/$(PRESET).yaml)

.PHONY: reproduce report verify test test-fast check style types plans docs install

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt requirements-oracles.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@echo "making .venv and installing the pinned packages; this takes minutes"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[pipeline,test]'
	$(BIN)/pip install --quiet --no-deps --requirement requirements-oracles.txt
	touch $@

reproduce: install
	@test '$(PRESET)' = laptop || test -f 'config/$(PRESET).yaml' || { \
	  echo "no preset '$(PRESET)'; there are laptop $(basename $(notdir $(wildcard config/*.yaml)))" >&2; \
	  exit 2; }
	$(BIN)/python workflow/run.py --cores $(CORES) $(CONFIGFILE)
	$(BIN)/python workflow/build_report.py $(PRESET)

report: install
	$(BIN)/python workflow/build_report.py $(PRESET)

verify: install
	$(BIN)/python workflow/verify.py $(PRESET)

test: install
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(CORES) --dist loadgroup --durations 15

test-fast: install
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(CORES) --dist loadgroup -m 'not slow'

check: style types plans

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules

types: install
	$(BIN)/mypy

plans: install
	for preset in smoke paper; do \
	  $(BIN)/snakemake --cores $(CORES) --dry-run --quiet rules --configfile config/$$preset.yaml || exit 1; \
	done
	$(BIN)/snakemake --cores $(CORES) --dry-run --quiet rules

docs: install
	$(BIN)/python workflow/update_docs.py
	$(BIN)/python workflow/draw_pipeline.py
