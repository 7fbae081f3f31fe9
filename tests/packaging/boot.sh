#!/bin/sh
# Boots a Debian in a container, runs a command in it, and ends it.
#
#   boot.sh ROOT COMMAND...
#
# Where this machine's control groups are of the old kind, the container gets the new ones in a mount space of its own;
# limits of memory and processor time are then not in force.
set -eu
root=$(realpath "${1:?usage: boot.sh ROOT COMMAND...}")
shift
name=reachy-remembers-test-$$
log=$(mktemp)
# shellcheck disable=SC2016
unshare --mount sh -c '
  mount --make-rprivate /
  if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -R /sys/fs/cgroup 2>/dev/null || umount -l /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
    mkdir -p "/sys/fs/cgroup/$2"
    echo $$ >"/sys/fs/cgroup/$2/cgroup.procs"
  fi
  exec systemd-nspawn --directory="$1" --boot --register=no --keep-unit --quiet --machine="$2" --console=pipe
' sh "$root" "$name" >"$log" 2>&1 </dev/null &
container=$!
end() {
  [ -z "${init:-}" ] || nsenter -t "$init" -a systemctl poweroff >/dev/null 2>&1 || true
  for _ in $(seq 20); do kill -0 "$container" 2>/dev/null || break; sleep 1; done
  kill "$container" 2>/dev/null || true
  rm -f "$log"
}
trap end EXIT

# The container's first process is the child of the one that we started.
init=""
for _ in $(seq 30); do
  init=$(pgrep -P "$container" -f systemd | head -n 1 || true)
  if [ -n "$init" ] && nsenter -t "$init" -a systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded'; then
    nsenter -t "$init" -a "$@"
    exit
  fi
  sleep 1
done
echo "boot.sh: the container did not start:" >&2
cat "$log" >&2
exit 1
