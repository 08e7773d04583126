# make app    install what the dashboard needs, load the demo, open the dashboard
# make test   install what the tests need, run all of them; what fails beside others is run once more, alone
# make check  ruff, mypy and the fast tests, in under a minute
# make coverage  the tests of make test under coverage.py, children too: lines never run, per room; each in build/coverage
# make gpu    the tests and the benchmark that need a CUDA device
# make docs   docs/REFERENCE.md and the index of docs/ARCHITECTURE.md from the code, the tables of docs/BENCHMARKS.md from what was measured
# make site   the documentation as a site, in build/site, its links checked
# make images take the pictures of README.md and docs/USER_GUIDE.md anew
# make package  the tutorial in an empty environment with nothing but the wheel: times and sizes (part of make soak)
# make soak   what takes hours: fuzzing (of stored files CDP_FUZZ_MINUTES, default 20), a thousand kills, a dashboard in use
#             (CDP_SOAK_MINUTES, default 120)
# make gauntlet  every stage over every corpus of ../shared/data, whole, by the command line: a table in build/gauntlet
# make endpoints  other people's servers of the OpenAI protocol, installed one by one: 20 minutes, seven once they are
# make writers  files as LibreOffice, pandoc, Chromium and EbookLib write them, and scans, read word for word: installs them
#             (Debian as root, and two packages in an environment of their own), then four minutes
# make interop  other programs with our models, each installed by itself: half an hour, minutes once they are
# make cluster  jobs on a Ray cluster that is started on this machine, and dies in part: under ten minutes
# make audit  look up known faults of the pinned libraries (needs a network)
# make reproduction  docs/REPRODUCTION.md with every figure and verdict from the kept scores, in a minute
# make reproduction-long  run the paper's experiment (hours on two cores, resumable), keep its scores, then the same
# make reproduction-small  the same pipeline on the demo, in minutes; make reproduction-full  what the paper's own size takes
# make demo-results  run the demo's test once more, and keep its scores for cdp demo to load: minutes on two cores
# make bench  measure speed against peers in under 20 minutes, write perf/results/<kind of machine>.json
# make bench-changed  the parts whose rooms the branch touched, in turns with the commit where it left main (or REV=…)

PYTHON ?= python3.11
PORT ?= 8501
# Tests wait for browsers and jobs: on two cores three processes keep both busy. Each loads the libraries for 9 CPU seconds.
TEST_PROCESSES ?= 3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip would compile every module of every library, which takes longer than to unpack them; Python compiles those that are
# imported when they first are, unless it is forbidden to.
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-dev chromium app test check coverage soak package gauntlet endpoints writers interop cluster audit bench bench-changed gpu docs site images demo-results lock clean

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed; name it with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt constraints.txt | $(BIN)/python
	$(PIP) --requirement requirements.txt
	@touch $@

# One pip keeps one processor busy for minutes: into an empty environment two install half of the lock each. The last one
# decides: it brings what is missing (another platform has other wheels) and looks whether all fits together.
$(VENV)/.installed-dev: requirements-dev.txt requirements-cluster.txt requirements.txt constraints.txt | $(BIN)/python
	@[ -e $@ ] || { for half in 'p;n' 'n;p'; do \
	  sed -n "$$half" constraints.txt | $(PIP) --no-deps --requirement /dev/stdin & done; wait; }
	$(PIP) --requirement requirements-dev.txt
	@touch $(VENV)/.installed $@

# The browser tests drive Debian's chromium; without one they skip and say so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || sh tests/browser/install_chromium.sh

app: install
	$(BIN)/python -m cdp demo
	$(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.headless $(if $(DISPLAY)$(filter Darwin,$(shell uname)),false,true)

# As CPython's own runner does with --rerun: a test that failed beside others is run once more, alone, and the run passes only
# if all of them pass then. Both runs name them, the first as FAILED. Exit code 1 means failed tests and nothing else: a
# module that cannot be collected (tests/uncollected.py) or an error of pytest itself ends the run at once.
# In a new environment nothing is compiled yet, and processes that begin together would each compile all of it: what the
# tests import is imported once before, beside mypy, each on a processor of its own.
test: install-dev chromium
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m pytest --quiet --collect-only >/dev/null 2>&1 & $(BIN)/python -m mypy --num-workers 0 && wait
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) || { [ $$? -eq 1 ] && \
	  echo "What failed beside others is run once more, alone. What passes now is named under PASSED." && \
	  $(BIN)/python -m pytest -n 0 -rap --maxfail 10 --last-failed --last-failed-no-failures none; }

check: install-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q -m "not slow and not browser and not soak" -n 2

# Slower than make test, so a test may fail here that passes there: what was run is told all the same.
coverage: install-dev chromium
	rm -rf build/coverage
	mkdir -p build/coverage
	-$(BIN)/python -m coverage run -m pytest -n $(TEST_PROCESSES)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage json --quiet -o build/coverage/lines.json
	$(BIN)/python -m coverage report --show-missing --skip-covered > build/coverage/lines.txt
	$(BIN)/python -m tests.never_run build/coverage/lines.json

# One at a time: what is measured here would measure its neighbour.
writers: install-dev chromium
	@command -v soffice >/dev/null && command -v pandoc >/dev/null && command -v tesseract >/dev/null && \
	  [ -n "$$(fc-list :lang=ja)" ] || apt-get install -y --no-install-recommends libreoffice-writer libreoffice-impress \
	  libreoffice-calc libreoffice-math pandoc tesseract-ocr fonts-noto-cjk
	@[ -e build/writers/bin/python ] || { $(BIN)/python -m venv build/writers && $(BIN)/python -c \
	  'import sysconfig; print(sysconfig.get_path("purelib"))' > $$(echo build/writers/lib/python3*/site-packages)/beside.pth; }
	build/writers/bin/python -m pip install --quiet --constraint constraints.txt EbookLib==0.20 ocrmypdf==17.13.0
	build/writers/bin/python -m pytest -n 0 -rs tests/writers tests/corpus/test_recognition.py

soak: install-dev chromium
	CDP_SOAK=1 $(BIN)/python -m pytest -n 0 -m soak --timeout 0

package: install-dev chromium
	CDP_SOAK=1 $(BIN)/python -m pytest -q -n 0 -s --timeout 0 tests/documents/test_fresh_environment.py

gauntlet: install-dev
	$(BIN)/python -m tests.gauntlet

# Each server has an environment of its own in build/endpoints, made once; llama-cpp-python is built from its source.
# What cannot be installed is skipped, and said. The table is docs/how-to/endpoint.md's.
endpoints: install-dev
	$(BIN)/python -m tests.endpoints

# Each peer has an environment of its own in build/interop, made once; the table of versions is tests/interop's.
interop: install-dev
	$(BIN)/python -m tests.interop

# The tests of tests/cluster that take minutes; without this variable they are skipped.
cluster: install-dev
	CDP_CLUSTER=1 $(BIN)/python -m pytest -n 0 tests/cluster

# In an environment of its own, so that what it needs is not among what it looks at. It asks the package index's service.
audit: install
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit
	build/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

reproduction: install
	$(BIN)/python -m reproduction document

# Stopped, it goes on where it was; REPRODUCTION_HOURS stops it after so long. The data is beside the repository.
reproduction-long: install
	$(BIN)/python -m reproduction check
	nice $(BIN)/python -m reproduction run --hours $(or $(REPRODUCTION_HOURS),24)

reproduction-small: install
	$(BIN)/python -m reproduction small

# The demo's finished test, which cdp demo loads: run once more, and packed into data/demo/test.json.gz.
demo-results: install
	$(BIN)/python -m reproduction.demo

reproduction-full: install
	$(BIN)/python -m reproduction full

bench: install-dev
	$(BIN)/python -m perf
	$(BIN)/python -m perf.report

bench-changed: install-dev
	$(BIN)/python -m perf --changed $(if $(REV),--against $(REV))

# What is measured lies in perf/results under the card's name; without a CUDA device both parts say so.
gpu: install-dev
	$(BIN)/python -m pytest -n 0 -m gpu
	$(BIN)/python -m perf gpu

# What docs/ quotes from the code.
docs: install
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python docs/generate_index.py
	$(BIN)/python -m perf.report

site: install-dev
	$(BIN)/python docs/build_site.py

# What README.md and docs/USER_GUIDE.md show: the dashboard on the demo, in chromium.
images: install-dev chromium
	CDP_IMAGES=docs/images $(BIN)/python -m pytest -q tests/browser/test_user_guide.py

# After changing requirements: the versions that are installed now become the lock.
lock: install-dev
	$(BIN)/python -m pip list --format=freeze --exclude pip --exclude setuptools | sed 's/+cpu$$//' > constraints.txt

clean:
	rm -rf build .cache test-artefacts .pytest_cache .mypy_cache .ruff_cache
