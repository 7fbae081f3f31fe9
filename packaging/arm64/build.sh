#!/bin/sh
# Builds the program for the robot's processor in the folder that prepare.sh made.
#
#   build.sh ROOT TARGET [CARGO-ARGUMENT...]
#
# ROOT is prepare.sh's folder. TARGET is Cargo's target folder; the program is then in
# TARGET/aarch64-unknown-linux-gnu/release/. Crates are fetched once, into TARGET/crates. Needs root, for chroot; the
# mounts are this script's own and end with it.
set -eu
usage="usage: build.sh ROOT TARGET [CARGO-ARGUMENT...]"
root=$(realpath "${1:?$usage}")
target=$(realpath -m "${2:?$usage}")
shift 2
project=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "build.sh: run this as root" >&2; exit 1; }
[ -e "$root/usr/bin/aarch64-linux-gnu-g++" ] && [ -e "$root/robot/usr/lib/aarch64-linux-gnu/libm.so.6" ] || { echo "build.sh: run prepare.sh $root first" >&2; exit 1; }

mkdir -p "$target/crates" "$root/project" "$root/target" "$root/static"
# The robot's C++ library is older than this compiler's, so the program carries its own. Its C library is older too: the
# newer one's mathematics would be asked for by versions that the robot does not have. A folder with nothing else in it,
# searched first, is how the linker is told.
ln -sf "$(chroot "$root" aarch64-linux-gnu-g++ -print-file-name=libstdc++.a)" "$root/static/libstdc++.a"
ln -sf /robot/usr/lib/aarch64-linux-gnu/libm.so.6 "$root/static/libm.so"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
certificates=/etc/ssl/certs/ca-certificates.crt
[ ! -f "$root/etc/ssl/certs/house.crt" ] || certificates=/etc/ssl/certs/house.crt

# The names of functions are a third of the program, and the robot's disk is small.
# GGML: nothing of the machine that builds, and no instruction that a Cortex-A72 does not have.
exec unshare --mount sh -c '
  root=$1 project=$2 target=$3 certificates=$4
  shift 4
  mount --make-rprivate /
  mount --bind "$project" "$root/project"
  mount -o remount,bind,ro "$root/project"
  mount --bind "$target" "$root/target"
  mount --bind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    CARGO_HOME=/target/crates CARGO_TARGET_DIR=/target \
    SSL_CERT_FILE="$certificates" CARGO_HTTP_CAINFO="$certificates" \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-L native=/static" \
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++ \
    AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar \
    GGML_NATIVE=OFF GGML_CPU_ARM_ARCH=armv8-a \
    chroot "$root" sh -euc "
      cd /project
      cargo build --locked --release --target aarch64-unknown-linux-gnu \"\$@\"
      cd /target/aarch64-unknown-linux-gnu/release
      for built in reachy-remembers libreachy_bridge.so; do
        [ ! -e \$built ] || aarch64-linux-gnu-strip --preserve-dates \$built
      done
    " sh "$@"
' sh "$root" "$project" "$target" "$certificates" "$@"
