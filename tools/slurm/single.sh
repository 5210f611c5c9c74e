#!/usr/bin/env bash
# A Slurm of one node on this machine, for as long as a command runs: single.sh CPUS COMMAND... The command finds it by SLURM_CONF. Needs root, and
# slurmctld, slurmd, slurm-client and munge from Debian. Debian's Open MPI finds its processes by --mpi=pmix, Debian's MPICH by --mpi=pmi2.
set -euo pipefail
cpus=${1:?how many CPUs the node says it has} dir=$(mktemp -d)
shift
export SLURM_CONF=$dir/slurm.conf
host=$(hostname -s)
stop() {
  for d in slurmd slurmctld munged; do
    [ -s "$dir/$d.pid" ] && kill "$(cat "$dir/$d.pid")" 2>/dev/null || true
  done
  sleep 1
  rm -rf "$dir"
}
trap stop EXIT
chmod 755 "$dir"
head -c 1024 /dev/urandom >"$dir/munge.key"
chmod 600 "$dir/munge.key"
mkdir "$dir/state" "$dir/spool"
cat >"$SLURM_CONF" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
MinJobAge=600
KillWait=60
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" --seed-file="$dir/munge.seed" --log-file="$dir/munged.log"
slurmctld -c
slurmd
for _ in $(seq 100); do
  sinfo -h -o %t 2>/dev/null | grep -q idle && break
  sleep 0.2
done
sinfo -h -o %t | grep -q idle || { tail -n 20 "$dir"/slurm*.log "$dir/munged.log"; exit 1; }
"$@"
