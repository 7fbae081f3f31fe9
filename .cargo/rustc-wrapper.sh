#!/bin/bash
# qdrant-edge 0.9.0 calls `debug_assert_matches!`, which rustc 1.95 still keeps behind a feature gate (E0658).
# Cargo calls this script instead of rustc; it opens that one gate for that one crate and passes everything else
# through untouched. It does nothing harmful on a newer compiler. It can go, with the line in config.toml that
# names it, as soon as the oldest compiler that we build on has `assert_matches` stable.
rustc="$1"
shift
case " $* " in
*" --crate-name qdrant_edge "*) RUSTC_BOOTSTRAP=1 exec "$rustc" "-Zcrate-attr=feature(assert_matches)" "$@" ;;
*) exec "$rustc" "$@" ;;
esac
