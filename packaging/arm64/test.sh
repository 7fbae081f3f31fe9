#!/bin/sh
# Whether a program built for the robot runs on its processor, here under emulation, and on its system.
#
#   test.sh ROOT PROGRAM [MODELS]
#
# ROOT is prepare.sh's folder, whose arm64 libraries are used. MODELS is a folder of fetched models: with it a text is
# turned into numbers, stored and found again, and the speech and picture models are loaded. An instruction that a
# Cortex-A72 does not have ends the program with SIGILL, and this script with it.
set -eu
usage="usage: test.sh ROOT PROGRAM [MODELS]"
root=$(realpath "${1:?$usage}")
program=$(realpath "${2:?$usage}")
models=${3:-}
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
  { echo "test.sh: install qemu-user-static first" >&2; exit 1; }
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT

# Debian 13's own: what the robot has.
newest() {
  chroot "$root" aarch64-linux-gnu-objdump -T /tmp/program | grep -o "$1_[0-9.]*" | sed "s/$1_//" | sort -uV | tail -n 1
}
not_over() { [ "$(printf '%s\n%s\n' "${2:-0}" "$3" | sort -V | tail -n 1)" = "$3" ] ||
  { echo "FAIL asks for $1 $2; the robot has $3" >&2; exit 1; }; }
cp "$program" "$root/tmp/program"
glibc=$(newest GLIBC) glibcxx=$(newest GLIBCXX)
rm "$root/tmp/program"
not_over GLIBC "$glibc" 2.41
not_over GLIBCXX "$glibcxx" 3.4.33
echo "ok   asks for GLIBC ${glibc:-of no version} and GLIBCXX ${glibcxx:-of no version}"

[ -z "$models" ] || models=$(realpath "$models")
cat >"$house/config.toml" <<END
[remember]
folder = "memory"
min_free_mb = 10
[models]
folder = "${models:-none}"
[act]
voice = "none"
END
robot() {
  began=$(date +%s)
  code=0
  "$emulator" -cpu cortex-a72 -L "$root/usr/aarch64-linux-gnu" "$program" --config "$house/config.toml" "$@" \
    >"$house/said" 2>"$house/complained" || code=$?
  took=$(($(date +%s) - began))
  if [ "$code" -gt 2 ]; then
    echo "FAIL $* ended with code $code (132 is an instruction that the processor does not have)" >&2
    cat "$house/said" "$house/complained" >&2
    exit 1
  fi
}
said() { grep -q -- "$1" "$house/said" || { echo "FAIL no \"$1\" in:" >&2; cat "$house/said" "$house/complained" >&2; exit 1; }; }

robot --version
said reachy-remembers
echo "ok   $(cat "$house/said")"
robot doctor
said memory
echo "ok   doctor, in $took s"
sed 's/^/     /' "$house/said"
if [ -z "$models" ]; then
  echo "skipped: no models were named, so nothing was embedded"
  exit 0
fi
echo "The ladder is in the cellar." >"$house/typed"
robot talk <"$house/typed"
echo "ok   a text was embedded and stored, in $took s"
robot memory search "where is the ladder"
said cellar
echo "ok   and found by a question, in $took s"
sed 's/^/     /' "$house/said"
