# make reproduce   everything of one preset: PRESET=laptop (default), smoke or paper
# make test        the whole test suite
# make check       style, types and dry runs

PYTHON ?= python3
PRESET ?= laptop
CORES ?= 2
BIN := .venv/bin
CONFIGFILE := $(if $(filter laptop,$(PRESET)),,--configfile config/$(PRESET).yaml)

.PHONY: reproduce test check install clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[pipeline,test]'
	touch $@

reproduce: install
	$(BIN)/snakemake --cores $(CORES) $(CONFIGFILE)

test: install
	$(BIN)/pytest -n $(CORES) --dist loadgroup

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/mypy
	for preset in smoke paper; do \
	  $(BIN)/snakemake --cores $(CORES) --dry-run --quiet rules --configfile config/$$preset.yaml || exit 1; \
	done
	$(BIN)/snakemake --cores $(CORES) --dry-run --quiet rules
