# `make run` and `make test` do everything on a fresh machine; both may be repeated at will.

PYTHON ?= python3.11
PORT ?= 8000
BIN := .venv/bin
INSTALLED := .venv/installed
PACKER := trainer/trace/packer
# A worker that died ends the tests: xdist may hand its files on to nobody and wait for ever (pytest-xdist #1378).
# Files go in their order, those with the longest tests first.
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -m "not timed"
BENCHES ?= start live overhead timeline views windows list pages

.PHONY: help setup run test lint bench pictures browser axe plotly readers lock clean

help:
	@echo "make run     set up, start everything, print the address   (PORT=$(PORT))"
	@echo "make test    set up, then every check and test, with a real browser"
	@echo "make bench   set up, then the measurements: $(BENCHES)"
	@echo "make pictures  every page in Chromium, into test-artifacts/look; the README's picture anew"
	@echo "make setup   the Python environment in .venv, from requirements.lock; the packer of spans, compiled"
	@echo "make plotly  the charts' library in static/vendor, in the version of the plotly package"
	@echo "make lock    new exact versions in requirements.lock, from pyproject.toml"
	@echo "make clean   remove .venv and caches; runs and accounts in .lockstep stay"

setup: $(INSTALLED) $(PACKER)/built

$(INSTALLED): requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "Lockstep needs Python 3.11: install it, or say where it is with make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "Lockstep needs Python 3.11; $(PYTHON) is $$($(PYTHON) --version)" >&2; exit 2; }
	@echo "Setting up .venv: torch and everything else, in exact versions. A few minutes the first time."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.lock
	@touch $(INSTALLED)

# What ranks record is packed by compiled code; where there is no compiler that is said, and Python does it.
$(PACKER)/built: $(wildcard $(PACKER)/*.c $(PACKER)/*.h) $(PACKER)/build.py $(INSTALLED)
	@echo "Compiling the packer of spans."
	@! $(BIN)/python -m trainer.trace.packer.build || touch $@

run: setup
	@exec $(BIN)/python manage.py up --port $(PORT)

# What times real processes, servers and pages runs by itself; the rest side by side, on all cores. Pages come after
# unit tests: beside Playwright's event loop neither tests with a loop of their own nor Django's ORM work.
test: setup
	@$(MAKE) --no-print-directory --jobs 2 --output-sync browser axe readers lint
ifdef TESTS
	$(BIN)/python -m pytest $(TESTS)
else
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/ranks tests/unit
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/browser tests/stack
	$(BIN)/python -m pytest -m timed tests/ranks
	$(BIN)/python -m pytest -m timed tests/stack tests/browser
endif

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/lint-imports

bench: setup browser readers
	@for name in $(BENCHES); do $(BIN)/python manage.py bench $$name || exit; done

pictures: setup browser
	$(BIN)/python -m tests.browser.pictures
	$(BIN)/python -m tests.browser.view_pictures
	$(BIN)/python -m tests.browser.program_pictures

# Tests drive the system's own Chromium: Playwright's download is not needed.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium from the system's packages."; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	  else echo "The browser tests need Chromium: install your system's package (such as: sudo apt-get install chromium)." >&2; exit 2; fi; }

# The accessibility rules that a test runs over the run page; without npm that test is skipped.
AXE := test-artifacts/axe.min.js
AXE_VERSION := 4.10.3

axe:
	@test -s $(AXE) || ! command -v npm >/dev/null || { mkdir -p $(dir $(AXE)) && \
	  (cd $(dir $(AXE)) && npm pack --silent axe-core@$(AXE_VERSION) >/dev/null && tar -xzf axe-core-$(AXE_VERSION).tgz -O package/axe.min.js >axe.part \
	    && mv axe.part axe.min.js && rm axe-core-$(AXE_VERSION).tgz) || echo "axe-core could not be fetched; its test is skipped." >&2; }

# Plotly's bundle for the pages: its basic charts alone, a quarter of all, in the version of the plotly package.
plotly: setup
	@version=$$($(BIN)/python -m tests.plotly_version) && cd static/vendor/plotly && \
	  npm pack --silent plotly.js-basic-dist-min@$$version >/dev/null && \
	  tar -xzf plotly.js-basic-dist-min-$$version.tgz --strip-components=1 package/plotly-basic.min.js package/LICENSE && \
	  rm plotly.js-basic-dist-min-$$version.tgz

# HolisticTraceAnalysis, which a test has read our export and `bench analysis` measures beside ours; without it both say so.
# It names JupyterLab among what it needs, so it lies apart from our packages, with what it truly imports beside them.
READERS := test-artifacts/hta
READERS_PACKAGES := HolisticTraceAnalysis==0.5.0 pandas==3.1.1 pydot==4.0.1 python-dateutil==4.0.0 six==1.17.0 psutil==7.2.2

readers: setup
	@test -e $(READERS)/whole || { rm -rf $(READERS) && \
	  $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --target $(READERS) $(READERS_PACKAGES) \
	    && touch $(READERS)/whole; } || echo "HolisticTraceAnalysis could not be fetched; its test is skipped." >&2

lock:
	$(BIN)/pip-compile --quiet --extra dev --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --output-file requirements.lock pyproject.toml
	@# A build of torch for one kind of machine is not what the lock means.
	@sed -i -E 's/^(torch==[0-9.]+)\+.*/\1/; s|^#    pip-compile.*|#    make lock|' requirements.lock

clean:
	rm -rf $(PACKER)/built $(PACKER)/*.so .venv .mypy_cache .ruff_cache .hypothesis .pytest_cache .import_linter_cache test-artifacts
