#!/bin/sh
# The configuration as it is installed: the project's own with a real body and other folders.
#
#   make-config.sh CONFIG [FOLDER/] >INSTALLED
#
# Memory and models are below FOLDER/, the service's own unless named; "" is the folder of the configuration itself.
# Everything else, comments too, stays as it is. A key that is not there is an error, so that none is forgotten.
set -eu
awk -v state="${2-/var/lib/reachy-remembers/}" '
  BEGIN {
    set["robot", "body"] = "\"sdk\""
    set["remember", "folder"] = "\"" state "memory\""
    set["models", "folder"] = "\"" state "models\""
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
