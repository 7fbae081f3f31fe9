#!/bin/sh
# Builds the Debian package, and prints where it is.
#
#   deb.sh [--profile NAME] [--target TRIPLE] [--no-build]
#
# The profile is `release` unless named; `dev` packs what `make build` has built. --no-build packs what is there, for a
# program that was built elsewhere. The tool that packs is built once, into REACHY_TOOLS or the target folder.
set -eu
cd "$(dirname "$0")/.."
profile=release triple="" build=yes
while [ $# -gt 0 ]; do
  case "$1" in
  --profile) profile=$2 && shift 2 ;;
  --target) triple=$2 && shift 2 ;;
  --no-build) build=no && shift ;;
  *) sed -n '2,7p' "$0" >&2 && exit 2 ;;
  esac
done

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=${REACHY_TOOLS:-$target/tools}
if [ ! -x "$tools/bin/cargo-deb" ]; then
  CARGO_TARGET_DIR="$tools/build" cargo install --root "$tools" cargo-deb --version 3.8.0 --locked
  rm -rf "$tools/build"
fi
PATH="$tools/bin:$PATH"

# Cargo's folder of the profile `dev` is called `debug`.
folder=$profile
[ "$profile" != dev ] || folder=debug
set -- --profile "$profile"
[ -z "$triple" ] || set -- "$@" --target "$triple"
[ "$build" = no ] || cargo build --locked "$@"

stage="$target/${triple:+$triple/}$folder/package"
mkdir -p "$stage"
sh packaging/make-config.sh config.toml >"$stage/config.toml"

# A program for another machine is stripped by its own tools, where they are there.
[ -z "$triple" ] || command -v "${triple%%-*}-linux-gnu-strip" >/dev/null || set -- "$@" --no-strip
[ -z "$triple" ] || set -- "$@" --variant robot
mkdir -p "$target/debian"
cargo deb --locked --no-build --output "$target/debian/" "$@"
