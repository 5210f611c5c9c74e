#!/bin/sh
# What mpirun calls in place of ssh: agent.sh HOST COMMAND ... runs the command in the namespace of a host named by its address.
host=$1
shift
exec ip netns exec "triax-h${host##*.}" unshare -u sh -c "hostname $host; $*"
