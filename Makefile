# Two commands are enough: `make demo` and `make test`. Each installs what it needs, shows its progress, and can be
# run again. Root is asked for system packages only.

BIN := $(or $(CARGO_TARGET_DIR),target)/debug/reachy-remembers
PACKAGES := cmake g++ make pkg-config espeak-ng python3 python3-pip
# On Debian the commands that these packages bring.
PROGRAMS := cmake g++ espeak-ng python3

.PHONY: help demo test test-llama test-sdk measure bench deb deb-arm64 test-a72 talk run doctor check build models portraits system

help:
	@echo "make demo    a day with Reachy on the simulated robot (installs, fetches and builds what it needs)"
	@echo "make test    every test"
	@echo "make test-llama  the language model's protocol against a real llama.cpp server"
	@echo "make talk    the same conversation, typed in this terminal"
	@echo "make doctor  what works, and what to do"
	@echo "make check   formatting and lints"
	@echo "make bench   how fast searches are, beside the Python build of the same engine"
	@echo "make deb     a Debian package of the service, for this machine (deb-arm64: for the robot)"

demo: models
	$(BIN) --config demo/config.toml demo

talk: models
	$(BIN) talk

run: models
	$(BIN) run

doctor: build
	$(BIN) doctor

# One build profile serves every command, so dependencies compile once.
test: models portraits
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --no-fail-fast; \
	else \
		cargo test --lib --bins --tests --no-fail-fast; \
	fi

# A real server for the protocol; its wheels are fetched once. Takes about two minutes.
test-llama:
	sh tests/llama/prepare.sh "$${CARGO_TARGET_DIR:-target}/llama"
	REACHY_TEST_LLAMA="$$(realpath "$${CARGO_TARGET_DIR:-target}")/llama/bin/python" \
		cargo test --test house -- brain_http::llama --nocapture

# Portraits that the tests of faces are held against; without them those tests say that they are skipped.
portraits: build
	@python3 tests/faces/portraits.py "$${CARGO_TARGET_DIR:-target}/tmp/portraits" || echo "the portraits could not be had"

# The robot's own SDK and its real daemon, with a simulated body; installs system packages and 330 MB of Python once.
test-sdk:
	sh tests/sdk/prepare.sh "$${CARGO_TARGET_DIR:-target}/sdk"
	cargo build -p reachy-bridge
	REACHY_TEST_SDK="$$(realpath "$${CARGO_TARGET_DIR:-target}")/sdk" \
		cargo test --test house -- sdk:: --nocapture --test-threads=1

# Times of single parts, one after the other, on a machine that does nothing else.
measure: models portraits
	cargo test --lib --tests -- --ignored --nocapture --test-threads=1

bench: models
	@test -x "$${CARGO_TARGET_DIR:-target}/bench/bin/python" || python3 -m venv "$${CARGO_TARGET_DIR:-target}/bench"
	"$${CARGO_TARGET_DIR:-target}/bench/bin/python" -m pip install --quiet --only-binary :all: "qdrant-edge-py==0.9.0"
	$(BIN) bench --python "$${CARGO_TARGET_DIR:-target}/bench/bin/python"

deb: build
	sh packaging/deb.sh

# For the robot's processor, on an amd64 Debian machine; needs root, some gigabytes and half an hour the first time.
ARM64 := $(or $(CARGO_TARGET_DIR),target)/arm64

deb-arm64:
	sh packaging/arm64/prepare.sh $(ARM64)/system
	sh packaging/arm64/build.sh $(ARM64)/system $(ARM64)
	CARGO_TARGET_DIR=$(ARM64) REACHY_TOOLS=$(or $(CARGO_TARGET_DIR),target)/tools \
		sh packaging/deb.sh --target aarch64-unknown-linux-gnu --no-build

# The whole program on the robot's processor, emulated.
test-a72:
	sh packaging/arm64/test.sh $(ARM64)/system $(ARM64)/aarch64-unknown-linux-gnu/release/reachy-remembers models/cache

check:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings

build: system
	cargo build --workspace

models: build
	$(BIN) models fetch

system:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup, then run this again." >&2; exit 1; }
	@missing=""; for program in $(PROGRAMS); do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
	python3 -m pip --version >/dev/null 2>&1 || missing="$$missing pip"; \
	if [ -n "$$missing" ]; then \
		echo "Installing system packages ($$missing missing): $(PACKAGES)"; \
		if [ "$$(id -u)" = 0 ]; then root=""; else root="sudo"; fi; \
		$$root apt-get update && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PACKAGES); \
	fi
