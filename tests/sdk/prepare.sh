#!/bin/sh
# Puts the robot's own SDK, which brings its daemon, into a Python environment of its own (about 330 MB). One of its
# parts is compiled, so its headers come first, and as they are the system's, only root (or sudo) can add them.
set -eu
folder="$1"
VERSION="1.13.0"
READY="from importlib.metadata import version; assert version('reachy-mini') == '$VERSION'; import reachy_mini"
if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "$READY" 2>/dev/null; then
    exit 0
fi
PACKAGES="python3-dev python3-venv gcc g++ pkg-config libgirepository1.0-dev libcairo2-dev gir1.2-gstreamer-1.0 \
gir1.2-gst-plugins-base-1.0 gir1.2-gst-plugins-bad-1.0 gstreamer1.0-tools gstreamer1.0-plugins-base \
gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-alsa gstreamer1.0-pulseaudio pulseaudio \
pulseaudio-utils libasound2-plugins"
missing=""
for package in $PACKAGES; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "Installing system packages:$missing"
    if [ "$(id -u)" = 0 ]; then root=""; else root="sudo"; fi
    $root apt-get -o DPkg::Lock::Timeout=600 update
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends \
        $missing
fi
echo "Fetching the robot's SDK into $folder"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet "reachy-mini==$VERSION"
"$folder/bin/python" -c "$READY"
