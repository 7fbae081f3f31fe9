#!/bin/sh
# Inside the booted Debian: the service as on the robot, with the robot's user, its SDK where the robot has it, and its own
# daemon, whose body is simulated. Only camera and sound are stood in for.
set -eu
. /srv/shown.sh
unit=reachy-remembers.service
state=/var/lib/reachy-remembers
config=/etc/reachy-remembers/config.toml
drop_in=/etc/systemd/system/$unit.d/stub.conf
doctor_has() { reachy-remembers doctor | grep -qF -- "$1"; }
journal_has() { journalctl --unit=$unit --no-pager --output=export | grep -aqF -- "$1"; }
answers() { python3 -c "import socket; socket.create_connection(('127.0.0.1', 8000))"; }

dpkg --purge reachy-remembers >/dev/null 2>&1 || true
rm -rf "$state"
getent passwd pollen >/dev/null || adduser --quiet --disabled-password --gecos "" pollen
chmod -R a+rX /srv /venvs
cat >/run/systemd/system/reachy-mini-daemon.service <<END
[Service]
User=pollen
Environment=REACHY_MINI_TELEMETRY=0
ExecStart=/venvs/mini_daemon/bin/reachy-mini-daemon --mockup-sim --no-media --no-wake-up-on-start --fastapi-host 127.0.0.1
END
mkdir -p "$(dirname $drop_in)"
printf '[Service]\nEnvironment=PYTHONPATH=/srv/stub REACHY_STUB=/srv/said\n' >$drop_in
systemctl daemon-reload
shown "the robot's own daemon runs" systemctl start reachy-mini-daemon
shown "and answers" soon 60 answers

shown "installs" dpkg -i /srv/first.deb
cp -r /srv/models "$state/models"
chown -R pollen:pollen "$state/models"
sed -i 's/^log_words = .*/log_words = true/' $config
shown "starts with its models" systemctl restart $unit
shown "is the robot's user" is "$(ps -o user= -p "$(systemctl show --property=MainPID --value $unit)")" pollen
shown "reaches the body through the SDK" soon 60 doctor_has "camera, microphone and speaker, motors on"
shown "sees" doctor_has "✓ seeing"
touch /srv/said/0.go
shown "hears what is said" soon 60 journal_has "in the blue box"
remembers() { reachy-remembers memory search "where is the key of the bicycle" | grep -q "blue box"; }
shown "and remembers it" soon 20 remembers
reachy-remembers doctor

systemctl stop reachy-mini-daemon
shown "says when the robot's own daemon is gone" soon 20 doctor_has "nothing answers at localhost:8000"
systemctl start reachy-mini-daemon
shown "and finds it again" soon 60 doctor_has "camera, microphone and speaker, motors on"

shown "stops" systemctl stop $unit
shown "with success" is "$(systemctl show --property=Result --value $unit)" success
# Without the stand-ins, which belong to the service.
reachy-remembers doctor >/tmp/doctor.log || true
shown "doctor nods with the real head" has /tmp/doctor.log "nodded"

rm -f $drop_in
touch "$state/forget-everything"
shown "is purged" dpkg --purge reachy-remembers
userdel --remove pollen >/dev/null 2>&1 || true
echo "$count shown"
