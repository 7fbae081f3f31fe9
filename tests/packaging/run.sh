#!/bin/sh
# What the package does to a Debian 13: it is installed, upgraded, run, killed, removed and purged in a system of its own.
#
#   run.sh PACKAGE ROOT [MODELS]
#
# PACKAGE is a .deb for this machine; ROOT becomes a small Debian (about 500 MB, fetched once); MODELS is a folder of
# fetched models, without which the service is tested deaf. With REACHY_TEST_ROBOT=1 (and models) the robot's own SDK comes
# into that system (1.5 GB, fetched once), and the service is run with it. Needs root, debootstrap and systemd-container.
# Ends with the number of what was shown, or with the first thing that was not.
set -eu
package=$(realpath "${1:?usage: run.sh PACKAGE ROOT [MODELS]}")
root=${2:?usage: run.sh PACKAGE ROOT [MODELS]}
models=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "run.sh: run this as root" >&2; exit 1; }

if [ ! -e "$root/etc/debian_version" ]; then
  own=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' | grep -o 'https\?://[^ ]*/debian/\?' | head -n 1 || true)
  debootstrap --variant=minbase trixie "$root" "${DEBIAN_MIRROR:-${own:?name a Debian mirror with DEBIAN_MIRROR}}"
fi
root=$(realpath "$root")
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
inside sh -c 'command -v systemctl adduser espeak-ng python3' >/dev/null 2>&1 || {
  inside apt-get update -q
  inside apt-get install -y -q --no-install-recommends systemd systemd-sysv dbus adduser procps espeak-ng \
    python3-minimal libgcc-s1 libstdc++6
}

# The same package as a later version, to upgrade to.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb -R "$package" "$work/later"
sed -i 's/^Version: .*/&+later/' "$work/later/DEBIAN/control"
dpkg-deb -b --root-owner-group "$work/later" "$root/srv/later.deb" >/dev/null
cp "$package" "$root/srv/first.deb"
rm -rf "$root/srv/models"
[ -z "$models" ] || cp -rL "$models" "$root/srv/models"
cp "$here/files.sh" "$here/life.sh" "$here/key.sh" "$here/robot.sh" "$here/shown.sh" "$here/laptop.py" "$root/srv/"
rm -rf "$root/srv/day" "$root/srv/said"
mkdir "$root/srv/day" "$root/srv/said"
cp "$here/day.toml" "$here/../../demo/sounds/key.wav" "$root/srv/day/"
{ printf 'P6\n640 480\n255\n' && head -c 921600 /dev/urandom; } >"$root/srv/day/picture.ppm"

# In a chroot with its own processes, which end with it.
apart() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork sh -c '
    root=$1 && shift
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root chroot "$root" "$@"
  ' sh "$root" "$@"
}
# Where the robot has its SDK; out of the way of what is shown without it.
[ ! -d "$root/venvs" ] || mv "$root/venvs" "$root/srv/venvs"

echo "── the package's files, in a chroot"
apart sh /srv/files.sh

echo "── the service, under the system's own systemd"
sh "$here/boot.sh" "$root" sh /srv/life.sh
if [ "${REACHY_TEST_ROBOT:-}" = 1 ] && [ -n "$models" ]; then
  echo "── the service on the robot's own SDK"
  if [ -d "$root/srv/venvs" ]; then mv "$root/srv/venvs" "$root/venvs"; else mkdir "$root/venvs"; fi
  cp -r "$here/../sdk/stub" "$here/../sdk/prepare.sh" "$root/srv/"
  # A house may have its own certificates.
  mkdir -p "$root/etc/ssl/certs"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/house.crt"
  apart env PIP_CERT=/etc/ssl/certs/house.crt sh /srv/prepare.sh /venvs/mini_daemon
  cp "$here/../../demo/sounds/key.wav" "$root/srv/said/0.wav"
  sh "$here/boot.sh" "$root" sh /srv/robot.sh
fi
rm -rf "$root/srv/models" "$root/srv/day" "$root/srv/said" "$root/srv/first.deb" "$root/srv/later.deb"
