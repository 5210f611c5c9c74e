#!/bin/sh
# mpirun over the namespaces that hosts.sh made, for triax launch --mpiexec.
exec "$(dirname "$0")/hosts.sh" run "$@"
