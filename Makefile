# make app    install what the dashboard needs, load the demo, open the dashboard
# make test   install what the tests need, run all of them
# make check  ruff, mypy and the fast tests, in under a minute
# make docs   make docs/REFERENCE.md anew from the code
# make images take the pictures of README.md and docs/USER_GUIDE.md anew
# make soak   what takes hours: fuzzing, a thousand kills, a dashboard in use (CDP_SOAK_MINUTES, default 120)
# make gauntlet  every stage over every corpus of ../shared/data, whole, by the command line: a table in build/gauntlet
# make audit  look up known faults of the pinned libraries (needs a network)
# make bench  measure speed against peers, write perf/results/latest.json

PYTHON ?= python3.11
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip would compile every module of every library, which takes longer than to unpack them; Python compiles those that are
# imported when they first are, unless it is forbidden to.
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-dev chromium app test check soak gauntlet audit bench docs images lock clean

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed; name it with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt constraints.txt | $(BIN)/python
	$(PIP) --requirement requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt requirements.txt constraints.txt | $(BIN)/python
	$(PIP) --requirement requirements-dev.txt
	@touch $(VENV)/.installed $@

# The browser tests drive Debian's chromium; without one they skip and say so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || sh tests/browser/install_chromium.sh

app: install
	$(BIN)/python -m cdp demo
	$(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.headless $(if $(DISPLAY)$(filter Darwin,$(shell uname)),false,true)

test: install-dev chromium
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: install-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q -m "not slow and not browser and not soak" -n 2 --dist worksteal

# One at a time: what is measured here would measure its neighbour.
soak: install-dev chromium
	CDP_SOAK=1 $(BIN)/python -m pytest -n 0 -m soak

gauntlet: install-dev
	$(BIN)/python -m tests.gauntlet

# In an environment of its own, so that what it needs is not among what it looks at. It asks the package index's service.
audit: install
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit
	build/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

bench: install-dev
	$(BIN)/python -m perf

# What docs/ quotes from the code.
docs: install
	$(BIN)/python docs/generate_reference.py

# What README.md and docs/USER_GUIDE.md show: the dashboard on the demo, in chromium.
images: install-dev chromium
	CDP_IMAGES=docs/images $(BIN)/python -m pytest -q tests/browser/test_user_guide.py

# After changing requirements: the versions that are installed now become the lock.
lock: install-dev
	$(BIN)/python -m pip list --format=freeze --exclude pip --exclude setuptools | sed 's/+cpu$$//' > constraints.txt

clean:
	rm -rf build test-artefacts .pytest_cache .mypy_cache .ruff_cache
