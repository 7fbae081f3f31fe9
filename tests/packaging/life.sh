#!/bin/sh
# Inside the booted Debian: the service's life under its systemd.
set -eu
. /srv/shown.sh
unit=reachy-remembers.service
config=/etc/reachy-remembers/config.toml
state=/var/lib/reachy-remembers
property() { systemctl show --property="$1" --value $unit; }
active() { [ "$(property ActiveState)" = active ]; }
another() { active && [ "$(property MainPID)" != "$1" ]; }
# With every field of an entry: what was heard, for example, is one of its own.
journal_has() { journalctl --unit=$unit --no-pager --output=export | grep -aqF -- "$1"; }
doctor_has() { reachy-remembers doctor | grep -qF -- "$1"; }
status_has() { property StatusText | grep -q -- "$1"; }
systemctl --version | head -n 1
echo "controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"

dpkg --purge reachy-remembers >/dev/null 2>&1 || true
rm -rf "$state"
rm -f /etc/systemd/system/$unit.d/key.conf
shown "installs" dpkg -i /srv/first.deb
shown "is started by the installation, and says that it is ready" soon 90 active
# There is no robot here, and nothing of its SDK: deaf and blind, it lives with its memory.
shown "says that it has no body, and why" soon 20 doctor_has "no body, only a silent room: there is no Python environment"
if [ -d /srv/models ]; then
  cp -r /srv/models "$state/models"
  chown -R reachy-remembers:reachy-remembers "$state/models"
  shown "stops" systemctl stop $unit
  echo "The ladder is in the cellar." | reachy-remembers talk >/dev/null
  shown "what is typed meanwhile leaves nothing of root's" is "$(find $state ! -user reachy-remembers | head -n 1)" ""
  began=$(date +%s%N)
  shown "starts with its models" systemctl start $unit
  echo "     ready after $((($(date +%s%N) - began) / 1000000)) ms"
fi
shown "runs as its own user" is "$(ps -o user:32= -p "$(property MainPID)" | tr -d ' ')" reachy-remembers
shown "its state is a line of its health" soon 20 status_has "no Python environment at /venvs/mini_daemon"
property StatusText
echo "     $(ps -o rss= -p "$(property MainPID)") kB resident"
shown "commands reach it" sh -c 'reachy-remembers doctor --json | grep -q "\"service\": true"'
[ ! -d /srv/models ] || shown "and say that its memory works without a body" doctor_has "✓ memory"
# Asked of the service, whose memory it is.
knows() { [ ! -d /srv/models ] || reachy-remembers memory search "where is the ladder" | grep -q cellar; }
shown "it knows what it was told" knows

main=$(property MainPID)
sed -i 's/^words_per_minute = .*/words_per_minute = 181/; s/^whisper_threads = .*/whisper_threads = 2/' $config
shown "reloads" systemctl reload $unit
shown "the reload is told" soon 10 journal_has "words_per_minute: 160 → 181"
shown "what needs a restart is named" journal_has "whisper_threads: 3 → 2"
sed -i 's/^words_per_minute = .*/words_per_minute = 9000/' $config
shown "a bad edit is noticed without a reload" soon 15 journal_has "The configuration stays as it was"
shown "and said why" journal_has "[act] words_per_minute"
shown "and changes nothing" is "$(property MainPID) $(property ActiveState)" "$main active"
sed -i 's/^words_per_minute = .*/words_per_minute = 182/' $config
shown "the next good one is taken over" soon 15 journal_has "words_per_minute: 181 → 182"

kill -KILL "$main"
shown "starts again after kill -9" soon 60 another "$main"
shown "and still knows" soon 20 knows
main=$(property MainPID)
kill -STOP "$main"
shown "a service that hangs is ended by the watchdog and started again" soon 120 another "$main"
shown "the watchdog says so" journal_has "Watchdog timeout"

# The sandbox, from inside: the same settings around another program.
probe() {
  sed -n '/^\[Service\]/,/^\[Install\]/p' /usr/lib/systemd/system/$unit |
    grep -vE '^(\[|Type|Exec|Restart|Watchdog|Timeout|#|$)' >/tmp/settings
  {
    echo "[Service]"
    echo "Type=oneshot"
    cat /tmp/settings
    echo "User=reachy-remembers"
    echo "ExecStart=/bin/sh -c '$1'"
  } >/run/systemd/system/probe.service
  systemctl daemon-reload
  systemctl start probe.service
}
shown "the sandbox lets it write its memory" probe "touch $state/probe && rm $state/probe"
shown "its files are its owner's alone" probe "touch $state/probe && test \$\$(stat -c %%a $state/probe) = 600 && rm $state/probe"
shown "but no file of the system" refused probe "touch /etc/probe"
shown "nor in /tmp" refused probe "touch /tmp/probe"
shown "nor see the processes of others" refused probe "test -e /proc/1/status"
connect='import socket,sys; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], 9)); s.send(b"x")'
echo "$connect" >/var/lib/reachy-remembers/send.py
chmod 644 /var/lib/reachy-remembers/send.py
shown "this machine can be reached" probe "python3 $state/send.py 127.0.0.1"
# A container is not given the kernel's firewall of control groups (nspawn keeps `bpf` from it), so this cannot fail here.
if probe "python3 $state/send.py 203.0.113.7"; then
  echo "skip an address outside the house: the firewall is not in force in this container"
else
  shown "an address outside the house cannot be reached" true
fi
rm -f /run/systemd/system/probe.service

. /srv/key.sh

main=$(property MainPID)
began=$(date +%s%N)
shown "stops" systemctl stop $unit
echo "     after $((($(date +%s%N) - began) / 1000000)) ms"
shown "with success" is "$(property Result)" success
sed -i 's/^words_per_minute = .*/words_per_minute = 9000/' $config
shown "does not start with a wrong configuration" refused systemctl start $unit
sleep 3
shown "and is not tried for ever" is "$(property ActiveState) $(property NRestarts)" "failed 0"
sed -i 's/^words_per_minute = .*/words_per_minute = 160/' $config
systemctl reset-failed $unit
shown "starts when it is right again" systemctl start $unit
shown "is upgraded" dpkg -i --force-confold /srv/later.deb
shown "and runs after the upgrade" soon 60 active
shown "and still knows" soon 20 knows
shown "with the configuration that was there" is "$(grep -c '^whisper_threads = 2' $config)" 1
shown "is removed" dpkg --remove reachy-remembers
shown "and runs no more" refused pgrep -f lib/reachy-remembers/reachy-remembers
touch "$state/forget-everything"
shown "is purged" dpkg --purge reachy-remembers
echo "$count shown"
