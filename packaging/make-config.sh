#!/bin/sh
# The configuration as it is installed: the project's own with the folders of a service.
#
#   make-config.sh CONFIG >INSTALLED
#
# Everything else, comments too, stays as it is. A key that is not there is an error, so that none is forgotten.
set -eu
awk '
  BEGIN {
    set["remember", "folder"] = "\"/var/lib/reachy-remembers/memory\""
    set["models", "folder"] = "\"/var/lib/reachy-remembers/models\""
  }
  /^\[[a-z_]+\]/ { section = substr($0, 2, index($0, "]") - 2) }
  match($0, /^[a-z_]+ *=/) {
    key = $1
    if ((section, key) in set) {
      print key " = " set[section, key]
      done[section, key] = 1
      next
    }
  }
  { print }
  END {
    for (one in set) if (!(one in done)) {
      split(one, part, SUBSEP)
      print "make-config.sh: there is no [" part[1] "] " part[2] >"/dev/stderr"
      exit 1
    }
  }
' "$1"
