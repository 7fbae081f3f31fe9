#!/bin/sh
# /usr/bin/reachy-remembers: the installed program with the installed configuration, as the user whose memory it is.
# A command line that names a configuration itself is passed on as it is.
program=/usr/lib/reachy-remembers/reachy-remembers
config=/etc/reachy-remembers/config.toml
state=/var/lib/reachy-remembers

# Models come through pip. Where the system's Python has none, the robot's own environment may.
if [ ! -d /usr/lib/python3/dist-packages/pip ] && [ -x /venvs/mini_daemon/bin/pip ]; then
  PATH=/venvs/mini_daemon/bin:$PATH
  export PATH
fi
for argument; do
  case "$argument" in
  --config | --config=*) exec "$program" "$@" ;;
  --) break ;;
  esac
done
# Root would leave files behind that the service may not open.
if [ "$(id -u)" = 0 ] && owner=$(stat -c %U "$state" 2>/dev/null) && [ "$owner" != root ]; then
  cd "$state" && exec runuser -u "$owner" -- "$program" --config "$config" "$@"
fi
exec "$program" --config "$config" "$@"
