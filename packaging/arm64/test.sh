#!/bin/sh
# Whether a program built for the robot runs on its processor, here under emulation, and on its system.
#
#   test.sh ROOT PROGRAM [MODELS]
#
# ROOT is prepare.sh's folder, in which the robot's own libraries lie; the bridge library lies beside PROGRAM. MODELS is a folder
# of fetched models: with it a text is turned into numbers, stored and found again, a spoken sentence is heard and a
# picture looked at, with ONNX Runtime for arm64 (fetched here) and without. An instruction that a Cortex-A72 does not
# have ends the program with SIGILL, and this script with it.
set -eu
usage="usage: test.sh ROOT PROGRAM [MODELS]"
root=$(realpath "${1:?$usage}")
program=$(realpath "${2:?$usage}")
models=${3:-}
[ "$(id -u)" = 0 ] || { echo "test.sh: run this as root" >&2; exit 1; }
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
  { echo "test.sh: install qemu-user-static first" >&2; exit 1; }
bridge=$(dirname "$program")/libreachy_bridge.so
project=$(cd "$(dirname "$0")/../.." && pwd)
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT

# Debian 13's own: what the robot has.
newest() {
  chroot "$root" aarch64-linux-gnu-objdump -T /tmp/looked-at | grep -o "$1_[0-9.]*" | sed "s/$1_//" | sort -uV | tail -n 1
}
not_over() { [ "$(printf '%s\n%s\n' "${2:-0}" "$3" | sort -V | tail -n 1)" = "$3" ] ||
  { echo "FAIL asks for $1 $2; the robot has $3" >&2; exit 1; }; }
for file in "$program" "$bridge"; do
  name=$(basename "$file")
  cp "$file" "$root/tmp/looked-at"
  glibc=$(newest GLIBC) glibcxx=$(newest GLIBCXX)
  links=$(chroot "$root" aarch64-linux-gnu-readelf -d /tmp/looked-at | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
  rm "$root/tmp/looked-at"
  not_over GLIBC "$glibc" 2.41
  not_over GLIBCXX "$glibcxx" 3.4.33
  # The robot's own libpython is opened when the program runs.
  case "$links" in *python*) echo "FAIL $name is linked to Python: $links" >&2 && exit 1 ;; esac
  echo "ok   $name asks for GLIBC ${glibc:-of no version} and GLIBCXX ${glibcxx:-of no version}, and links $links"
done

if [ -n "$models" ]; then
  # Links, so that what is fetched here for arm64 does not land among this machine's models.
  cp -rs "$(realpath "$models")" "$house/models"
  find "$house/models" -name '*x86_64*' -prune -exec rm -r {} +
fi
cp "$project/tests/packaging/day.toml" "$project/demo/sounds/key.wav" "$house/"
{ printf 'P6\n640 480\n255\n' && head -c 921600 /dev/urandom; } >"$house/picture.ppm"
cat >"$house/config.toml" <<END
[robot]
time_zone = "UTC"
[remember]
folder = "memory"
min_free_mb = 10
[models]
folder = "models"
[act]
voice = "none"
[privacy]
log_words = true
END
sed 's/^\[robot\]/&\nday = "day.toml"/' "$house/config.toml" >"$house/day-config.toml"
config=config.toml
robot() {
  began=$(date +%s)
  code=0
  # This machine's processors in /sys are none of an emulated one: ONNX Runtime reads them there, and dies of them.
  # shellcheck disable=SC2016
  unshare --mount sh -c 'mount --make-rprivate / && mount -t tmpfs none /sys && exec "$@"' sh \
    "$emulator" -cpu cortex-a72 -L "$root/robot" "$program" --config "$house/$config" "$@" \
    >"$house/said" 2>"$house/complained" || code=$?
  took=$(($(date +%s) - began))
  if [ "$code" -gt 2 ]; then
    echo "FAIL $* ended with code $code (132 is an instruction that the processor does not have)" >&2
    cat "$house/said" "$house/complained" >&2
    exit 1
  fi
}
said() { grep -q -- "$1" "$house/said" "$house/complained" || { echo "FAIL no \"$1\" in:" >&2; cat "$house/said" "$house/complained" >&2; exit 1; }; }

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

# The day's clock stands still while the robot thinks, so an emulated one is not too slow for it.
plays_a_day() {
  config=day-config.toml
  robot run
  config=config.toml
  said 'text="The key of the bicycle is in the blue box."'
  said "($1); "
  echo "ok   a sentence was heard and a picture looked at with $1, in $took s"
}
plays_a_day rten
robot memory search "where is the key of the bicycle"
said "blue box"
echo "ok   and what was heard is found, in $took s"
robot models fetch "$(sed -n 's/^name = "\(onnxruntime-.*-aarch64\)"/\1/p' "$project/models/manifest.toml")"
if [ "$code" = 0 ]; then
  plays_a_day onnxruntime
else
  echo "skip ONNX Runtime: it could not be fetched for arm64"
fi
