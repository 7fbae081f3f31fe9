# Two commands are enough: `make demo` and `make test`. Each installs what it needs, shows its progress, and can be
# run again. Root is asked for system packages only.

TARGET := $(or $(CARGO_TARGET_DIR),target)
BIN := $(TARGET)/debug/reachy-remembers
PACKAGES := cmake g++ make pkg-config espeak-ng python3 python3-pip
# On Debian the commands that these packages bring.
PROGRAMS := cmake g++ espeak-ng python3

.PHONY: help demo test test-llama test-sdk measure bench deb deb-arm64 test-deb test-a72 app app-arm64 build-arm64 talk run \
	doctor check build models portraits system

help:
	@echo "make demo    a day with Reachy on the simulated robot (installs, fetches and builds what it needs)"
	@echo "make test    every test"
	@echo "make test-llama  the language model's protocol against a real llama.cpp server"
	@echo "make talk    the same conversation, typed in this terminal"
	@echo "make doctor  what works, and what to do"
	@echo "make check   formatting and lints"
	@echo "make bench   how fast searches are, beside the Python build of the same engine"
	@echo "make deb     a Debian package of the service, for this machine (deb-arm64: for the robot)"
	@echo "make app     the robot dashboard's app, for this machine (app-arm64: for the robot)"
	@echo "make test-deb  installs, runs and removes the package in a small Debian (test-a72: the robot's program, emulated)"

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

# What is packed is built with the profile `release`, or with PROFILE=dev as everything else here.
deb: system
	sh packaging/deb.sh --profile $(or $(PROFILE),release)

# The package's whole life in a Debian 13 of its own; needs root, debootstrap and systemd-container. Packs what the tests
# are built with, so that nothing is compiled twice. With REACHY_TEST_ROBOT=1 also on the robot's own SDK.
test-deb: models
	sh packaging/deb.sh --profile $(or $(PROFILE),dev)
	sh tests/packaging/run.sh "$$(ls -t $(TARGET)/debian/reachy-remembers_*.deb | head -n 1)" $(TARGET)/debian-13 models/cache

# For the robot's processor, on an amd64 Debian machine; needs root, some gigabytes and an hour the first time.
ARM64 := $(TARGET)/arm64
ARM64_BUILT := $(ARM64)/aarch64-unknown-linux-gnu/release

build-arm64:
	sh packaging/arm64/prepare.sh $(ARM64)/system
	sh packaging/arm64/build.sh $(ARM64)/system $(ARM64)

deb-arm64: build-arm64
	CARGO_TARGET_DIR=$(ARM64) REACHY_TOOLS=$(TARGET)/tools \
		sh packaging/deb.sh --target aarch64-unknown-linux-gnu --no-build

# The whole program on the robot's processor, emulated.
test-a72: build-arm64 models
	sh packaging/arm64/test.sh $(ARM64)/system $(ARM64_BUILT)/reachy-remembers models/cache

# A wheel that the robot's dashboard installs, under app/dist in the target folder.
app: system
	cargo build --locked --workspace --profile $(or $(PROFILE),release)
	sh app/build.sh $(TARGET)/$(patsubst dev,debug,$(or $(PROFILE),release))/reachy-remembers $(TARGET)/app

app-arm64: build-arm64
	sh app/build.sh $(ARM64_BUILT)/reachy-remembers $(TARGET)/app-arm64

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
