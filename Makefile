# All tasks of a developer; `make` alone lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PAGE := src/gpulse/live/static
BUILT := $(PAGE) src/gpulse/surfaces/jupyter/labextension
export PYTHONPATH := src:.
PARALLEL := -n $$(($$(nproc) * 2)) --maxprocesses 6 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

try: $(VENV)/.installed ## install gpulse into .venv and run it; without a GPU, run the demo
	@$(BIN)/gpulse || { [ $$? = 3 ] && $(BIN)/gpulse --demo; }

check: programs lint types imports docscheck page test ## run all checks and tests, as CI does

# As root, apt-get installs what is missing; otherwise the tests that need it are skipped.
programs:
	@$(PYTHON) -m tools.programs

lint: $(STAMP) ## check formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP) ## check types with mypy (strict)
	$(BIN)/mypy

imports: $(STAMP) ## check the import rules
	$(BIN)/lint-imports --no-logo

page: $(STAMP) ## build the web page, the JupyterLab extension and the widget, compare them with the committed files, and test the page in a browser
	@$(PYTHON) -m tools.programs npm chromium
	PYTHON=$(abspath $(BIN))/python sh web/test/page.sh $(BUILT)

# e2e, the longest files, are first; GPULSE_ORDER=random changes that
test: $(STAMP) $(VENV)/.frameworks $(VENV)/.jupyter programs ## run all tests, two files per core: many wait for a browser or a clock
	$(BIN)/python -m pytest $(PARALLEL) --durations 15

# A time namespace in which the machine has booted 20 s ago.
young: $(STAMP) cc ## run the unit tests as on a machine that has just booted; needs root
	unshare --time --fork --monotonic -$$(($$(cut -d. -f1 /proc/uptime) - 20)) --boottime -$$(($$(cut -d. -f1 /proc/uptime) - 20)) \
	  $(BIN)/python -m pytest $(PARALLEL) tests/unit tests/contract tests/fake_nvml

dist: $(VENV)/dist/.stamp ## build the packages of a release, check them, and try them in empty environments
	$(VENV)/dist/bin/python -m tools.dist

site: $(STAMP) $(VENV)/site/.stamp ## build the documentation site in build/site, and check it with axe
	$(BIN)/python -m tools.site
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build --strict --quiet
	@[ -d web/node_modules ] && command -v chromium >/dev/null || { echo "skipped: axe checks the site only with chromium and after \`make page\`"; exit 0; }; \
	  cd web && npm run --silent site ../build/site

fuzz: $(STAMP) cc ## run the property tests with new random examples, ten times
	for i in 1 2 3 4 5 6 7 8 9 10; do GPULSE_FUZZ=1 $(BIN)/python -m pytest -x $$(grep -rl '^@given' tests/unit tests/contract) || exit 1; done

mutations: $(STAMP) ## check that the tests notice 30 deliberate mistakes in the code
	$(BIN)/python -m tools.mutations

docscheck: $(STAMP) ## check that generated documents are up to date
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.dashboards --check

fix: $(STAMP) ## format the code and fix lint errors
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP) ## generate documents, man page, completions and pictures
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.dashboards
	$(BIN)/python -m tools.picture

golden: $(STAMP) ## rewrite the expected screens; review the diff
	GPULSE_UPDATE=1 $(BIN)/python -m pytest tests/unit

bench: $(STAMP) cc ## compare with gpustat and nvitop on the scripted driver
	$(BIN)/python -m bench

parity: $(STAMP) ## compare all values with nvidia-smi; needs a GPU
	$(BIN)/python -m bench.parity

fake: $(STAMP) cc ## run a command on a scripted driver: SCENARIO=dgx-h100x8 CMD='gpulse'
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m tests.fake_nvml $(SCENARIO) -- $(CMD)

cc:
	@$(PYTHON) -m tools.programs cc

clean: ## remove everything generated
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'  # the first that installs dependency groups
	$(BIN)/pip install --quiet --editable '.[all]' --group dev
	@touch $@

# TensorBoard, MLflow, W&B, torch, Lightning, Transformers, Keras, accelerate: the tests use the real packages.
$(VENV)/.frameworks: $(STAMP)
	$(BIN)/pip install --quiet --group frameworks --group smi
	$(BIN)/pip uninstall --quiet --yes pynvml  # nvgpu asks for it; it adds 30 ms to every start of Python, and nvidia-ml-py has the module
	@touch $@

# JupyterLab, the newest and the oldest that the extension supports; hatchling builds the wheel that they are tested with.
$(VENV)/.jupyter: $(STAMP)
	$(BIN)/pip install --quiet --group notebooks
	$(PYTHON) -m venv $(VENV)/jupyterlab-oldest
	$(VENV)/jupyterlab-oldest/bin/pip install --quiet 'jupyterlab==4.0.*' ipykernel
	for python in $(BIN) $(VENV)/jupyterlab-oldest/bin; do $$python/pip uninstall --quiet --yes rfc3987-syntax; done  # 1.4 s of every start of a lab, to check IRIs
	@touch $@

# Building and checking packages; apart, so that its dependencies are not those of the tests.
$(VENV)/dist/.stamp:
	$(PYTHON) -m venv $(VENV)/dist
	$(VENV)/dist/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV)/dist/bin/pip install --quiet --group dist
	@touch $@

$(VENV)/site/.stamp:
	$(PYTHON) -m venv $(VENV)/site
	$(VENV)/site/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV)/site/bin/pip install --quiet --group site
	@touch $@

$(VENV)/.installed: pyproject.toml $(shell find src -name '*.py')
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile .  # modules are compiled when they are first loaded: 2 s earlier to the first picture
	@touch $@ && rm -f $(STAMP)

.PHONY: help try check dist site lint types imports test young docscheck fix docs golden bench parity fake clean programs cc page
