# make demo    set up everything and run the first example on a phantom RTX 3090
# make test    every test; make build: the command and a Python with torch; make fmt lint: tidy

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps
FATHOM := target/release/fathom
OTHERS := 2.13.0 2.6.0

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

test-python: build $(VENV)/test.stamp $(OTHERS:%=.venvs/%/torch.stamp)
	$(VENV)/bin/python -m pytest tests -q

bench: build $(VENV)/test.stamp
	$(VENV)/bin/python bench/step.py

# torch comes alone: of NVIDIA's packages only cuDNN is needed, which is asked for workspaces.
$(VENV)/torch.stamp: requirements/torch.txt requirements/runtime.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/torch.txt -r requirements/runtime.txt
	touch $@

$(VENV)/test.stamp: $(VENV)/torch.stamp requirements/test.txt
	$(PIP) -r requirements/test.txt
	touch $@

# Other builds of torch that must work: CUDA 13.0 and CUDA 12.4.
.venvs/%/torch.stamp: requirements/runtime.txt
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps torch==$* -r requirements/runtime.txt -r requirements/pytest.txt
	touch $@

clean:
	rm -rf target $(VENV) .venvs
