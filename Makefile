# make demo    set up everything and run the first example on a phantom RTX 3090
# make test    every test; make build: the command and a Python with torch; make fmt lint: tidy

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps
FATHOM := target/release/fathom

.PHONY: demo build test test-rust test-python fmt lint bench clean

demo: build
	$(FATHOM) run --gpu rtx3090 -- $(VENV)/bin/python examples/first/train.py

build: $(VENV)/torch.stamp
	cargo build --release --quiet

test: lint test-rust test-python

lint:
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings

fmt:
	cargo fmt --all

# nextest where it is installed; cargo's own runner does the same work elsewhere.
test-rust:
	if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --workspace; else cargo test --workspace; fi

test-python: build $(VENV)/test.stamp
	$(VENV)/bin/python -m pytest tests -q

# torch comes alone: of NVIDIA's packages only cuDNN is needed, which is asked for workspaces.
$(VENV)/torch.stamp: requirements/torch.txt requirements/runtime.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/torch.txt -r requirements/runtime.txt
	touch $@

$(VENV)/test.stamp: $(VENV)/torch.stamp requirements/test.txt
	$(PIP) -r requirements/test.txt
	touch $@

clean:
	rm -rf target $(VENV) .venvs
