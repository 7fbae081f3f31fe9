#!/bin/sh
# Inside the Debian: what the package puts where, whose it is, and what stays after its end. Nothing runs here but dpkg
# and the program itself.
set -eu
. /srv/shown.sh
state=/var/lib/reachy-remembers
config=/etc/reachy-remembers/config.toml
wanted=/etc/systemd/system/multi-user.target.wants/reachy-remembers.service
drop_in=/etc/systemd/system/reachy-remembers.service.d/user.conf
about() { stat -c '%U:%G %a' "$1"; }

# What an earlier run may have left.
dpkg --purge reachy-remembers >/dev/null 2>&1 || true
rm -rf "$state" "$(dirname $drop_in)"
userdel --remove pollen >/dev/null 2>&1 || true

shown "installs in one step" apt-get install -y -q --no-install-recommends /srv/first.deb
shown "is a proper package" is "$(dpkg -V reachy-remembers)" ""
shown "the configuration is a conffile" has /var/lib/dpkg/info/reachy-remembers.conffiles "^$config"
shown "the configuration is root's, for all to read" is "$(about $config)" "root:root 644"
shown "without pollen it makes a user" is "$(about $state)" "reachy-remembers:reachy-remembers 700"
shown "and names it to the service" has "$drop_in" "^User=reachy-remembers"
shown "who cannot log in" is "$(getent passwd reachy-remembers | cut -d: -f7)" /usr/sbin/nologin
shown "the service starts with the machine" test -L "$wanted"
shown "the program is root's" is "$(about /usr/lib/reachy-remembers/reachy-remembers)" "root:root 755"
shown "the bridge lies beside it" is "$(about /usr/lib/reachy-remembers/libreachy_bridge.so)" "root:root 644"
shown "the body is a real one" has "$config" '^body = "sdk"'
shown "the program answers" reachy-remembers --version
shown "systemd accepts the unit" systemd-analyze verify --man=no reachy-remembers.service
systemd-analyze security --offline=true reachy-remembers.service | tail -n 1

reachy-remembers doctor >/tmp/doctor.log 2>&1 || true
shown "doctor says what to do" has /tmp/doctor.log "models fetch"
[ ! -d "$state/memory" ] ||
  shown "root's commands leave nothing of root's" is "$(find $state ! -user reachy-remembers | head -n 1)" ""

# The service by hand, in the unit's environment, killed and started again.
run() {
  runuser -u reachy-remembers -- sh -c "umask 0077; cd $state; exec env -i PATH=/usr/bin:/bin \
    /usr/lib/reachy-remembers/reachy-remembers --config $config run" 2>"/tmp/run.log" &
}
running() {
  grep -q ' ready' /tmp/run.log && reachy-remembers doctor --json 2>/dev/null | grep -q '"service": true'
}
if [ -d /srv/models ]; then
  cp -r /srv/models "$state/models"
  chown -R reachy-remembers:reachy-remembers "$state/models"
  runuser -u reachy-remembers -- sh -c "cd $state && echo 'The ladder is in the cellar.' |
    /usr/lib/reachy-remembers/reachy-remembers --config $config talk" >/dev/null
fi
run
shown "runs" soon 60 running
# There is no robot here, and nothing of its SDK.
shown "says that it has no body, and why" has /tmp/doctor.log "no Python environment at /venvs/mini_daemon"
pkill -KILL -u reachy-remembers -f 'config.toml run$'
shown "is killed" soon 10 refused pgrep -u reachy-remembers
run
shown "runs again after kill -9" soon 60 running
if [ -d /srv/models ]; then
  reachy-remembers memory search "where is the ladder" >/tmp/search.log 2>&1 || true
  shown "and still knows" has /tmp/search.log cellar
fi
shown "its files are its own" is "$(find $state/memory -perm /077 | head -n 1)" ""
pkill -TERM -u reachy-remembers -f 'config.toml run$'
shown "ends when asked" soon 10 refused pgrep -u reachy-remembers

echo "# the owner was here" >>"$config"
echo kept >"$state/a-memory"
shown "upgrades" dpkg -i --force-confold /srv/later.deb
shown "an edited configuration stays" has "$config" "the owner was here"
shown "a memory stays" has "$state/a-memory" kept
if [ -d /srv/models ]; then
  reachy-remembers memory search "where is the ladder" >/tmp/search.log 2>&1 || true
  shown "and is found by the later version" has /tmp/search.log cellar
fi
shown "its owner stays" is "$(about $state)" "reachy-remembers:reachy-remembers 700"

shown "is removed" dpkg --remove reachy-remembers
shown "the configuration stays after removing" has "$config" "the owner was here"
shown "the memory stays after removing" has "$state/a-memory" kept
shown "program and bridge are gone" refused test -e /usr/lib/reachy-remembers
shown "installs again over what stayed" dpkg -i --force-confold /srv/first.deb
mkdir -p "$state/models" && touch "$state/models/weights"
shown "is purged" dpkg --purge reachy-remembers
shown "the configuration is gone" refused test -e /etc/reachy-remembers
shown "the link to the service is gone" refused test -L "$wanted"
shown "the drop-in is gone" refused test -e "$(dirname $drop_in)"
shown "the memory stays after a purge" has "$state/a-memory" kept
shown "what can be fetched again is gone" refused test -e "$state/models"

shown "installs a third time" dpkg -i /srv/first.deb
touch "$state/forget-everything"
shown "is purged with the memory" dpkg --purge reachy-remembers
shown "the memory is gone when asked" refused test -e "$state"
shown "its user is gone with it" refused getent passwd reachy-remembers

# As on the robot.
getent passwd pollen >/dev/null || adduser --quiet --disabled-password --gecos "" pollen
shown "installs beside pollen" dpkg -i /srv/first.deb
shown "the memory is pollen's" is "$(about $state)" "pollen:pollen 700"
shown "no user is made" refused getent passwd reachy-remembers
shown "no drop-in is made" refused test -e "$drop_in"
shown "is purged again" env REACHY_FORGET_EVERYTHING=1 dpkg --purge reachy-remembers
shown "the memory is gone by the environment too" refused test -e "$state"
userdel --remove pollen >/dev/null 2>&1 || true
echo "$count shown"
