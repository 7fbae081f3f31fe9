#!/bin/sh
# Makes the folder in which the robot's program is built on another machine: a small Debian with a cross compiler.
#
#   prepare.sh FOLDER
#
# Needs root (it makes a whole system's files), debootstrap and about 3 GB; can be run again. Debian sid, because it is
# the one that has both a new enough Rust and Rust's library for arm64 as packages. Beside it, in /robot, lie the C and
# C++ libraries of the robot's own Debian 13: the program is linked and tried with them. The mirror is this machine's own,
# or DEBIAN_MIRROR.
set -eu
root=${1:?usage: prepare.sh FOLDER}
own=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' | grep -o 'https\?://[^ ]*/debian/\?' | head -n 1 || true)
mirror=${DEBIAN_MIRROR:-${own:?name a Debian mirror with DEBIAN_MIRROR}}

[ "$(id -u)" = 0 ] || { echo "prepare.sh: run this as root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "prepare.sh: install debootstrap first" >&2; exit 1; }

if [ ! -e "$root/etc/debian_version" ]; then
  mkdir -p "$root"
  debootstrap --variant=minbase sid "$root" "$mirror"
fi

# Some mirrors' Release file of sid is older than it says it may be.
echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90old-release-file"
echo 'APT::Install-Recommends "false";' >"$root/etc/apt/apt.conf.d/90no-recommends"
# A house may have its own certificates.
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
  mkdir -p "$root/etc/ssl/certs"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/house.crt"
fi

inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
if ! inside sh -c 'command -v cargo cmake aarch64-linux-gnu-g++ && ls /usr/lib/rustlib/aarch64-unknown-linux-gnu/lib' \
  >/dev/null 2>&1; then
  inside dpkg --add-architecture arm64
  inside apt-get update
  inside apt-get install -y rustc cargo crossbuild-essential-arm64 libstd-rust-dev:arm64 cmake make pkg-config \
    ca-certificates
fi

if ! inside test -e /robot/lib/ld-linux-aarch64.so.1; then
  # Only looked into, so the lists of sid stay as they are.
  echo "deb [arch=arm64] $mirror trixie main" >"$root/tmp/robot.list"
  inside sh -euc '
    lists=$(mktemp -d)
    mkdir "$lists/partial"
    from="-o Dir::Etc::sourcelist=/tmp/robot.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$lists -o APT::Sandbox::User=root"
    apt-get $from update
    cd "$lists"
    apt-get $from download libc6:arm64/trixie libgcc-s1:arm64/trixie libstdc++6:arm64/trixie
    mkdir -p /robot
    for package in *.deb; do dpkg-deb -x "$package" /robot; done
    ln -sfn usr/lib /robot/lib
    rm -r "$lists" /tmp/robot.list
  '
fi
inside rustc --version
inside aarch64-linux-gnu-g++ --version | head -n 1
