# Read by the scripts beside it: says what was shown, and ends with the first thing that was not.
count=0
shown() {
  what=$1 && shift
  if "$@" >/tmp/shown.log 2>&1; then
    count=$((count + 1))
    echo "ok   $what"
  else
    echo "FAIL $what: $*" >&2
    cat /tmp/shown.log >&2
    exit 1
  fi
}
refused() { ! "$@"; }
is() { [ "$1" = "$2" ] || { echo "is $1, not $2"; return 1; }; }
has() { grep -q -- "$2" "$1"; }
# Tries for some seconds.
soon() {
  seconds=$1 && shift
  until "$@"; do
    seconds=$((seconds - 1))
    [ "$seconds" -gt 0 ] || return 1
    sleep 1
  done
}
