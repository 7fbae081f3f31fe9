#!/bin/sh
# Makes the app as the robot's dashboard installs it: these files with the prebuilt program in them.
#
#   app/build.sh PROGRAM FOLDER
#
# PROGRAM is reachy-remembers for the machine that the app is for (arm64 for the robot itself); the bridge library lies
# beside it, as Cargo leaves both. FOLDER becomes a source tree that pip installs, and FOLDER/dist gets a wheel. Nothing of
# it is committed.
set -eu
program=$(realpath "${1:?usage: build.sh PROGRAM FOLDER}")
folder=${2:?usage: build.sh PROGRAM FOLDER}
bridge=$(dirname "$program")/libreachy_bridge.so
machine_of() { od -An -t u2 -j 18 -N 2 "$1" | tr -d ' '; }
[ -f "$bridge" ] || { echo "build.sh: there is no $bridge; build the whole workspace" >&2; exit 1; }
[ "$(machine_of "$program")" = "$(machine_of "$bridge")" ] ||
  { echo "build.sh: $program and $bridge are for different machines" >&2; exit 1; }
own=$(cd "$(dirname "$0")" && pwd)

rm -rf "$folder"
mkdir -p "$folder/reachy_remembers/bin"
cp "$own/pyproject.toml" "$own/README.md" "$own/index.html" "$own/style.css" "$folder/"
cp "$own"/reachy_remembers/*.py "$folder/reachy_remembers/"
cp -r "$own/reachy_remembers/static" "$folder/reachy_remembers/"
sh "$own/../packaging/make-config.sh" "$own/../config.toml" "" >"$folder/reachy_remembers/config.toml"
install -m 755 "$program" "$folder/reachy_remembers/bin/reachy-remembers"
install -m 644 "$bridge" "$folder/reachy_remembers/bin/"

# The wheel is for the machine that the program is for.
case $(machine_of "$program") in
183) machine=linux_aarch64 ;;
62) machine=linux_x86_64 ;;
*) echo "build.sh: $program is for no machine that a Reachy Mini has" >&2 && exit 1 ;;
esac
python3 -m pip wheel --quiet --no-deps --wheel-dir "$folder/dist" \
  --config-settings="--build-option=--plat-name=$machine" "$folder"
rm -rf "$folder/build" "$folder"/*.egg-info
ls "$folder/dist"
