# Everything a developer does has one word here; `make` alone lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PAGE := src/gpulse/surfaces/web/static
export PYTHONPATH := src:.

.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

try: $(VENV)/.installed ## install gpulse into .venv and run it; without a GPU, its demo
	@$(BIN)/gpulse || { [ $$? = 3 ] && $(BIN)/gpulse --demo; }

check: lint types imports docscheck page test ## everything below at once; what CI runs

lint: $(STAMP) ## format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

imports: $(STAMP) ## who may import whom
	$(BIN)/lint-imports --no-logo

page: $(STAMP) node browser ## the page of `gpulse serve`: built anew it must be what is here, types, tests, a browser
	cd $(PAGE) && sha256sum * > $(abspath $(VENV))/page.sums
	cd web && npm ci --silent --no-audit --no-fund && npm run --silent build && npm run --silent check && npm test --silent
	cd $(PAGE) && sha256sum --check --quiet $(abspath $(VENV))/page.sums
	PYTHON=$(abspath $(BIN))/python sh web/test/real.sh
	cd web && PYTHONPATH=../src ONLY='silence|lost GPU|only ever text' npm run --silent test:browser  # these need a server that misbehaves

test: $(STAMP) $(VENV)/.frameworks compiler browser prometheus ## every test
	$(BIN)/python -m pytest

docscheck: $(STAMP) ## are the made documents up to date?
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.dashboards --check

fix: $(STAMP) ## format and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP) ## make documents, man page, completions and the picture
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.dashboards
	$(BIN)/python -m tools.picture

golden: $(STAMP) ## write the expected screens anew; the diff is the review
	GPULSE_UPDATE=1 $(BIN)/python -m pytest tests/unit

bench: $(STAMP) compiler ## side by side with gpustat and nvitop on the scripted driver
	$(BIN)/python -m bench

parity: $(STAMP) ## every value beside nvidia-smi's; needs a GPU
	$(BIN)/python -m bench.parity

fake: $(STAMP) compiler ## SCENARIO=dgx-h100x8 CMD='gpulse': a command on a scripted driver
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.fake_nvml $(SCENARIO) -- $(CMD)

clean: ## remove everything made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# A C compiler builds the scripted driver.
compiler:
	@command -v cc >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev; }

# A browser opens the pages we make; what Debian recommends with it are fonts.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; }

# A Prometheus scrapes us, and promtool judges what it gets; Debian would start it as a service.
prometheus:
	@command -v promtool >/dev/null || { apt-get update -qq && \
	  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus; }

# Node builds and tests the page; who only uses gpulse needs none.
node:
	@command -v npm >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm; }

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

# TensorBoard, MLflow, W&B, torch, Lightning, Transformers, Keras, accelerate: the tests log to and train with the real ones.
$(VENV)/.frameworks: $(STAMP)
	$(BIN)/pip install --quiet --editable '.[frameworks]'
	@touch $@

$(VENV)/.installed: pyproject.toml $(shell find src -name '*.py')
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet .
	@touch $@ && rm -f $(STAMP)

.PHONY: help try check lint types imports test docscheck fix docs golden bench parity fake clean compiler browser prometheus node page
