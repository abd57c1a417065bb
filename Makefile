# make lab    open the course in JupyterLab          make setup  only make the environment
#             (INSTRUCTOR=1: with nbgrader's tools and all folders in sight)
# make hub-test  as root: a class on a real JupyterHub, with users of its own; HUB is a folder that all can read
# make test   run the tests                          make lock   requirements.in -> requirements.lock
# make proofs run whole what make test samples (grader/README.md); python -m grader suites --all runs the rest
# make canary tilescope's tests with each supported release of Triton
# make build  start page, texts -> notebooks -> labs  make clean  remove the environment and caches; work/ stays
# make site   the course as plain pages, in site/, with labs that are judged in the page
#             (LABS=--instructor: with solutions; LABS="--numpy PLACE": a folder or an address that holds Pyodide's numpy)
# LAB="--no-browser --port=8899" goes to JupyterLab, TESTS="kernels -k gemm" to pytest, SITE="--out DIR" to the pages.

ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := $(CURDIR)/.venv/Scripts
AND := ;
else
PYTHON ?= python3
BIN := $(CURDIR)/.venv/bin
AND := :
endif

# Where torch comes from on a machine without an NVIDIA GPU; empty: the default build.
export TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# What installs the lock, and makes it; empty: pip installs.
export UV_VERSION ?= 0.13.8
STATE := $(CURDIR)/.jupyter-state

.PHONY: lab test proofs canary hub hub-test setup build site lock clean
.DEFAULT_GOAL := lab

setup:
	@$(PYTHON) .ci/setup.py

# Lab keeps its settings and kernels inside the project, so nothing of the user's home changes it or is changed.
lab: export PATH := $(BIN):$(PATH)
lab: export JUPYTER_CONFIG_PATH := $(if $(INSTRUCTOR),$(CURDIR)/.jupyter/instructor$(AND))$(CURDIR)/.jupyter
lab: export JUPYTER_CONFIG_DIR := $(STATE)/config
lab: export JUPYTER_DATA_DIR := $(STATE)/data
lab: export JUPYTER_RUNTIME_DIR := $(STATE)/runtime
lab: export JUPYTERLAB_SETTINGS_DIR := $(STATE)/settings
lab: export JUPYTERLAB_WORKSPACES_DIR := $(STATE)/workspaces
lab: export IPYTHONDIR := $(STATE)/ipython
lab: setup
	@$(BIN)/python -m grader work
	@$(BIN)/python -m jupyterlab $(LAB)

SIDE_BY_SIDE := --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

test: export PATH := $(BIN):$(PATH)
# each worker has a core, and more threads would wait for one another
test: export OPENBLAS_NUM_THREADS := 1
# compiled files are kept even where the environment says no, as in many images: hundreds of processes would compile anew
test: export PYTHONDONTWRITEBYTECODE :=
test: setup
	@$(BIN)/python -m grader programs
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations=10 $(TESTS)

# What `make test` takes a fixed sample of, whole.
proofs: export PATH := $(BIN):$(PATH)
proofs: export PYTHONDONTWRITEBYTECODE :=
proofs: setup
	@$(BIN)/python -m grader programs
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m slow $(TESTS)
	@if [ "$$(id -u)" = 0 ] && command -v npm >/dev/null && [ -x /usr/bin/python3 ]; then \
	    $(MAKE) hub-test PYTHON=/usr/bin/python3; \
	else echo "not run: the JupyterHub, which needs root, npm and /usr/bin/python3 (make hub-test)"; fi

# tilescope with each release of Triton that it supports, each in an environment of its own (.canary/)
canary: setup
	@$(BIN)/python -m tilescope.proofs.canary

# Students run this environment, so neither it nor its Python may lie in a home: make hub-test PYTHON=/usr/bin/python3
HUB ?= /opt/tile-by-tile
hub-test: export PATH := $(HUB)/env/bin:$(PATH)
hub-test: export TILE_PROXY := $(HUB)/proxy/node_modules/.bin/configurable-http-proxy
hub-test: hub
	$(HUB)/env/bin/python -m pytest grader/classroom/hub

hub:
	@TILE_VENV=$(HUB)/env $(PYTHON) .ci/setup.py
	@$(HUB)/env/bin/python -m pip install --quiet -r grader/classroom/hub/requirements.txt -c requirements.lock
	@npm install --silent --no-fund --no-audit --prefix $(HUB)/proxy configurable-http-proxy@5.3.0

build: setup
	@$(BIN)/python -m widgets.lab_pages
	@$(BIN)/python -m grader build

site: setup
	@$(BIN)/python -m widgets.site $(SITE)
	-@$(BIN)/python -m grader.site $(SITE) $(LABS)

# uv resolves for all systems at once; it lives only as long as this takes.
lock:
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && $(PYTHON) -m venv "$$tools" \
	&& "$$tools/bin/pip" install --quiet uv==$(UV_VERSION) \
	&& "$$tools/bin/uv" pip compile --quiet requirements.in -o requirements.lock --no-annotate \
	   --custom-compile-command "make lock" && git diff --stat -- requirements.lock

clean:
	rm -rf .venv .canary .jupyter-state .cache .pytest_cache .ruff_cache *.egg-info
	find kernels widgets tilescope grader -name __pycache__ -type d -prune -exec rm -rf {} +
