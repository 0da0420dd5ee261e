# A fresh machine needs python >= 3.11, gcc, make and a package index; the first target run does the rest.
PYTHON      ?= python3
# A worker that has nothing left takes tests from the others, so that none idles at the end.
PYTEST_ARGS ?= -n auto --dist worksteal
# No test of `make test` takes ten minutes; those of long runs do.
LONG := -o faulthandler_timeout=0
LOGREEL_FUZZ ?= 20000
LOGREEL_SOAK ?= 500
LOGREEL_SHRINK ?= 200
ASAN_FUZZ    ?= 2000

# Tests start hundreds of processes of logreel, and each would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN  := $(VENV)/bin

# What the compiled kernels and the metadata of an editable install depend on; plain Python sources are seen at once.
BUILD_INPUTS := pyproject.toml setup.py $(wildcard packages/*/pyproject.toml) $(wildcard src/logreel/kernels/*.py src/logreel/kernels/*.pxd)

# Packages of their own that extend logreel; they see it as those of other people do.
PACKAGES := $(wildcard packages/*)

# An older build would pass for current: setuptools compares the C file with the extension, not setup.py's flags.
DROP_KERNELS = rm -rf build src/logreel/kernels/*.so

.DEFAULT_GOAL := help
.PHONY: help demo test check coverage test-packages test-fleet test-train lint style bench bench-results bench-contracts bench-comparisons red-page bench-instructions oracles fuzz fuzz-coverage soak shrink threads asan screenshots docs site man release-check build test-wheels test-twins fresh drop clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.run ## guided run on a bundled log
	@./logreel demo

# Files of tests are in memory where there is plenty of it: disks take a twentieth of the time, for journals and fsync.
# Those of failed tests are gone then; SCRATCH=/tmp keeps them.
SCRATCH ?= $(shell [ -w /dev/shm ] && [ "$$(df --output=avail -BG /dev/shm | tr -dc 0-9)" -ge 8 ] && \
    [ "$$(awk '/^MemAvailable/ {print int($$2 / 2 ^ 20)}' /proc/meminfo)" -ge 8 ] && echo /dev/shm || echo /tmp)

# mypy takes a minute of one core where it has no cache, so it runs beside the tests; its errors come last. In a fresh
# clone, each worker would compile all tests (16 s, 6 s when it is done), so they are collected once before.
test: style ## style, types and the whole test suite
	@mkdir -p build; $(BIN)/python tools/check_types.py >build/mypy.txt 2>&1 & types=$$!; \
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -q >/dev/null; \
	case $(SCRATCH) in /dev/shm) export TMPDIR=$$(mktemp -d /dev/shm/tests-XXXXXX); trap 'rm -rf "$$TMPDIR"' EXIT INT TERM HUP;; esac; \
	$(BIN)/python -m pytest $(PYTEST_ARGS); tests=$$?; \
	wait $$types; types=$$?; cat build/mypy.txt; \
	[ $$types = 0 ] || echo "make test: mypy has found what is above" >&2; \
	[ $$types = 0 ] && exit $$tests

ROOM ?= ops
check: $(VENV)/.test ## style, types and tests of one room in a minute: make check ROOM=ops/rewrite, formats/ulog, cli, docs …
	@$(BIN)/python tools/check_room.py $(ROOM)

test-packages: $(VENV)/.test ## build and test the packages that extend logreel, in packages/
	@set -e; for package in $(PACKAGES); do \
	    $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist $$package; \
	    $(BIN)/python -m pytest $(PYTEST_ARGS) $$package; \
	done

# Ray and others bring versions of their own of what others need, so they get an environment of their own.
FLEET := .venv-fleet
LOGREEL_FLEET ?= 400
test-fleet: ## 400 logs on all engines: installs Ray, Daft and Dask into an environment of its own; LOGREEL_FLEET=N sets the number
	$(PYTHON) -m venv $(FLEET)
	$(FLEET)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[view,fleet,polars,ray,daft]' 'dask[dataframe]' mcap $(if $(shell command -v java),pyspark) pytest hypothesis
	LOGREEL_FLEET=$(LOGREEL_FLEET) $(FLEET)/bin/python -m pytest $(LONG) tests/fleet

# lerobot needs torch, so it gets an environment of its own. Of what it requires, only what its datasets import is
# installed; LOGREEL_TORCH names another build of torch. torchvision 0.25 is the last one with the decoder for av.
TRAIN := .venv-train
LOGREEL_TORCH ?= torch
test-train: ## load what we write with lerobot itself: installs lerobot and torch into an environment of its own
	$(PYTHON) -m venv $(TRAIN)
	$(TRAIN)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[view,train]' pytest hypothesis pillow \
	    '$(LOGREEL_TORCH)' 'datasets>=4,<5' 'huggingface-hub>=0.34.2,<0.36' 'av>=15,<16' 'jsonlines>=4,<5' \
	    'accelerate<2' 'einops' 'draccus==0.10.0' 'gymnasium' 'termcolor' 'deepdiff' 'packaging<26' 'setuptools<81' \
	    'opencv-python-headless<4.13'
	$(TRAIN)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'lerobot==0.4.4' 'torchvision==0.25.0'
	$(TRAIN)/bin/python -m pytest $(LONG) tests/outputs/dataset

lint: style ## style and types only
	$(BIN)/mypy

style: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(VENV)/.test ## every workload beside yardsticks and peers, 12 minutes; QUICK=1: the main ones, 3 minutes; BENCH="--only ulog" selects
	$(BIN)/python bench/run.py $(if $(QUICK),--quick) $(BENCH)

bench-results: $(VENV)/.test ## measure on a quiet machine, and fill README.md and docs/ with the figures
	-$(BIN)/python bench/run.py --json bench/results.json $(BENCH)
	$(BIN)/python bench/figures.py

bench-contracts: $(VENV)/.test ## learned contracts: false alarms on good runs of three vehicles, and which faults they find (10 minutes)
	$(BIN)/python bench/contracts.py $(BENCH)

bench-comparisons: $(VENV)/.test ## comparisons of two runs: false alarms on pairs of good runs, and which faults they find
	$(BIN)/python bench/comparisons.py $(BENCH)

red-page: $(VENV)/.test build ## the time from pip install to the page of a failing run, in an environment of its own
	$(BIN)/python bench/red_page.py "$$(ls -t dist/logreel-*.whl | head -1)"

bench-instructions: $(VENV)/.test ## count the instructions of the kernels with callgrind, and compare with the committed counts
	$(BIN)/python bench/instructions.py $(BENCH)

oracles: $(VENV)/.test ## every reader and writer beside its peers, over the samples in ../shared
	$(BIN)/python tests/oracles/run.py $(ORACLES)

# Processes that tests start, and their forks, are measured as well; kernels, which are compiled, are not. Python 3.14
# counts branches at little cost, older ones take several times as long. coverage starts with each Python of its
# environment, so it has one of its own. Left out are tests of what a start loads, and those that kill processes, whose
# forks would run what is to run at the end of others.
COVERAGE := .venv-coverage
coverage: ## which lines and branches of src/logreel the tests run, build/coverage/html; fails below 92 %: make coverage PYTHON=python3.14
	$(PYTHON) -m venv $(COVERAGE)
	$(COVERAGE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]' $(addprefix -e ./,$(PACKAGES)) 'coverage>=7.10'
	rm -rf build/coverage
	@mkdir -p build/coverage
	$(COVERAGE)/bin/python -m coverage run -m pytest $(PYTEST_ARGS) $(LONG) \
	    -k 'not load_little and not test_killing and not test_following'; tests=$$?; \
	$(COVERAGE)/bin/python -m coverage combine --quiet && $(COVERAGE)/bin/python -m coverage html --quiet && \
	$(COVERAGE)/bin/python -m coverage report --skip-covered && exit $$tests

# Properties of rewritten logs, of traces and of pyramids, of which `make test` tries half the examples.
PROPERTIES := $(addprefix tests/ops/,edit/test_edit.py test_one_pass.py test_record_ring.py test_recover_everything.py \
    test_rewrite.py test_selected_log.py test_slice_times.py test_windows.py)
# Random damage, scenes, types and steps of other tests, of which `make test` tries half as well.
PROPERTIES += $(addprefix tests/formats/test_,bddf_rewrite.py carla_queries.py carla_ticks.py carla_trajectories.py \
    conformance.py incremental_readers.py koblenz_undescribed_types.py rosbag_recover.py rosbag2_folder.py ulog_events.py) \
    $(addprefix tests/schemas/test_,cdr_encodings.py protobuf_fixed_encoder.py) \
    tests/log/test_read_ahead.py tests/registry/test_index_cache.py tests/outputs/test_osi.py \
    tests/meaning/test_pyramid_of_a_field.py
fuzz: $(VENV)/.test ## long run of damage, of kernels beside plain readers, and of random rewrites; LOGREEL_FUZZ=N sets the number of cases
	LOGREEL_FUZZ=$(LOGREEL_FUZZ) $(BIN)/python -m pytest $(PYTEST_ARGS) $(LONG) tests/damage tests/kernels \
	    $(PROPERTIES)

# atheris is not needed by anything else, and wants an environment that it can instrument.
FUZZ := .venv-fuzz
LOGREEL_FUZZ_SECONDS ?= 60
fuzz-coverage: ## fuzz all readers and parsers guided by coverage (atheris); LOGREEL_FUZZ_SECONDS=N for each target
	$(PYTHON) -m venv $(FUZZ)
	@$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary atheris 'atheris>=3.0' || \
	    { echo "make fuzz-coverage: there is no atheris for `$(PYTHON) --version` on this machine; with another Python:" \
	    "make fuzz-coverage PYTHON=python3.11. 'make fuzz' needs no atheris" >&2; exit 1; }
	$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[view,sql]'
	$(FUZZ)/bin/python fuzz/run.py $(LOGREEL_FUZZ_SECONDS)

soak: $(VENV)/.test ## kill recorders and appenders at random moments; LOGREEL_SOAK=N times for each format
	LOGREEL_SOAK=$(LOGREEL_SOAK) $(BIN)/python -m pytest $(PYTEST_ARGS) $(LONG) \
	    tests/damage/test_killing.py tests/damage/test_following.py tests/cli/test_record_ros_command.py

shrink: $(VENV)/.test ## let 200 mapped files shrink while threads read them; LOGREEL_SHRINK=N sets the number
	LOGREEL_SHRINK=$(LOGREEL_SHRINK) $(BIN)/python -m pytest $(PYTEST_ARGS) $(LONG) tests/damage/test_shrinking.py

# Some libraries of the tests are not there for a free-threaded Python, so it gets an environment of its own. Left out
# are tests of what needs these, above all DuckDB.
THREADS := .venv-threads
LOGREEL_ROUNDS ?= 5
threads: ## threads that share logs, and formats, reading, writing and damage, on a free-threaded Python: make threads PYTHON=python3.14t; LOGREEL_ROUNDS=N
	@$(PYTHON) -c 'import sys, sysconfig; sysconfig.get_config_var("Py_GIL_DISABLED") or sys.exit("make threads: this Python has a global lock; name another one: make threads PYTHON=python3.14t")'
	$(PYTHON) -m venv $(THREADS)
	$(THREADS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[view,pandas,xarray,encrypted]' zstandard \
	    pytest pytest-xdist hypothesis pyulog rosbags mcap
	PYTHON_GIL=0 LOGREEL_SOAK=$(LOGREEL_ROUNDS) $(THREADS)/bin/python -m pytest $(PYTEST_ARGS) tests/log/test_shared_by_threads.py
	PYTHON_GIL=0 $(THREADS)/bin/python -m pytest $(PYTEST_ARGS) $(addprefix tests/,kernels layout index io log write formats schemas meaning \
	    registry lenses damage) $(wildcard tests/ops/test_re*.py) --ignore-glob='tests/io/test_remote*' \
	    -k 'not sql and not query and not duckdb and not rot_behind and not wrong_checksums and not rosbag_decrypt and not every_failing_call'

# The sanitizers must be loaded before Python, and see single allocations only without Python's own allocator. The
# kernels go to a folder of their own, so that the installed ones stay as they are.
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
ASAN_LIBS = $(shell gcc -print-file-name=libasan.so) $(shell gcc -print-file-name=libubsan.so)

# Signals of mapped files that shrink are those of kernels/mapguard, not of the sanitizer.
# The tests that kill processes wait for them no longer than plain ones take; they add nothing for the kernels.
asan: $(VENV)/.test ## kernel and damage tests with bounds checked, AddressSanitizer and UBSan (needs gcc's libasan)
	rm -rf build/asan && mkdir -p build/asan && cp -r src setup.py pyproject.toml README.md LICENSE build/asan/
	rm -f build/asan/src/logreel/kernels/*.so
	LOGREEL_DEBUG=1 CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python -m pip install --quiet \
	    --disable-pip-version-check --no-deps --no-cache-dir --target build/asan/site build/asan
	LD_PRELOAD="$(ASAN_LIBS)" PYTHONMALLOC=malloc PYTHONPATH=build/asan/site LOGREEL_CACHE=off LOGREEL_DEBUG=1 \
	ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:handle_sigbus=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 LOGREEL_FUZZ=$(ASAN_FUZZ) \
	    $(BIN)/python -m pytest $(PYTEST_ARGS) $(LONG) tests/kernels tests/layout tests/index tests/damage \
	    tests/registry/test_index_cache.py --ignore=tests/damage/test_killing.py --ignore=tests/damage/test_following.py

screenshots: $(VENV)/.test ## the pictures of docs/images (needs chromium)
	$(BIN)/python tools/screenshots.py

docs: $(VENV)/.test ## run every example of README.md and docs/
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/test_docs.py

# Sphinx is not needed by anything else.
SITE := .venv-site
site: ## the documentation site, build/site: installs Sphinx into an environment of its own; NAME=dev names the version, OUT=FOLDER keeps others
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
	$(SITE)/bin/python tools/build_site.py $(if $(NAME),--name $(NAME)) $(if $(OUT),--out $(OUT))

man: $(VENV)/.run ## the manual page, build/man/logreel.1
	$(BIN)/python tools/man_page.py

release-check: $(VENV)/.test ## walk the list of docs/release.md; QUICK=1: without wheel and sdist
	$(BIN)/python tools/release_check.py $(if $(QUICK),--quick)

build: $(VENV)/.venv ## an sdist, and the wheel made from it, in dist/
	$(BIN)/python tools/artifacts.py dist

drop: $(VENV)/.venv ## the page that reads logs in the browser, build/drop: make drop PYODIDE=FOLDER of a distribution; WHEEL=FILE: do not compile
	@[ -n "$(PYODIDE)" ] || { echo "make drop: say where a Pyodide distribution is: make drop PYODIDE=FOLDER" >&2; exit 1; }
	$(BIN)/python tools/build_drop.py $(PYODIDE) $(if $(WHEEL),--wheel $(WHEEL))

# Left out are tests of what such systems do not have: locks of recorders, links, owners, and syncs of folders.
test-twins: $(VENV)/.test ## reading, writing and indexes with the twins of what Windows and browsers lack (io/platform.py)
	LOGREEL_PLATFORM=twins $(BIN)/python -m pytest $(PYTEST_ARGS) tests/io tests/write tests/registry/test_index_cache.py \
	    --ignore=tests/io/test_locking.py --ignore=tests/io/test_sync_folder.py --ignore=tests/io/test_folders_that_do_not_sync.py \
	    -k 'not two_appenders and not permissions_are_kept and not full_disk_leaves'

test-wheels: $(VENV)/.test build ## install the wheel into bare environments: every Python here, every extra alone (20 minutes)
	LOGREEL_WHEELS=dist $(BIN)/python -m pytest $(PYTEST_ARGS) $(LONG) tests/test_wheels.py

FRESH ?= build/fresh.json
fresh: $(VENV)/.test ## what a stranger types, in an empty folder: make demo, README, tutorial, every recipe; FRESH=FILE gets the times
	@mkdir -p build
	LOGREEL_FRESH=$(abspath $(FRESH)) $(BIN)/python -m pytest -q $(LONG) tests/test_fresh_start.py

clean: ## back to a fresh checkout
	$(DROP_KERNELS)
	rm -rf $(VENV) dist logreel-demo .pytest_cache .hypothesis .mypy_cache .ruff_cache src/*.egg-info packages/*/src/*.egg-info packages/*/build
	find src tests bench packages -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("logreel needs Python 3.11 or newer, this is %d.%d: make PYTHON=/path/to/python3.11" % v[:2])'
	@$(PYTHON) tools/set_up.py --venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.venv $(BUILD_INPUTS)
	@$(DROP_KERNELS)
	@$(BIN)/python tools/set_up.py .
	@touch $@

# The test install contains the plain one, so its stamp serves both.
$(VENV)/.test: $(VENV)/.venv $(BUILD_INPUTS)
	@$(DROP_KERNELS)
	@$(BIN)/python tools/set_up.py ".[test]" $(PACKAGES)
	@touch $(VENV)/.run $@
