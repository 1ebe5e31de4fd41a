# make test: everything that tests, set-up included. make lint: format, lints, documentation.
CARGO ?= cargo
PYTHON_ENV := target/python

.PHONY: test lint reference

test: $(PYTHON_ENV)/ready
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		PARBAKE_PYTHON=$(PYTHON_ENV)/bin/python $(CARGO) nextest run; \
	else \
		PARBAKE_PYTHON=$(PYTHON_ENV)/bin/python $(CARGO) test; \
	fi

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps

# Readers other than ours check the written files; without Python or a package index those checks are left out.
$(PYTHON_ENV)/ready:
	@mkdir -p target
	@if python3 -m venv $(PYTHON_ENV) && $(PYTHON_ENV)/bin/pip install -q numpy==2.4.6 pyarrow==26.0.0; then \
		touch $@; \
	else \
		echo "no Python with pyarrow: the checks that need it are left out"; \
	fi

# Makes the reference values for pictures again (needs Pillow 13.0.0 in PYTHON).
PYTHON ?= python3
reference:
	$(PYTHON) tests/reference/make_image_reference.py fixtures/photos tests/reference/image
	$(PYTHON) tests/reference/make_jitter_reference.py fixtures/photos tests/reference/image/jitter.json
