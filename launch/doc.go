// Package launch knows how processes are started together: which launcher started this one, by rules over the environment, and which
// launcher there is to start others with.
//
//	1 own flags   2 torchrun   3 Open MPI   4 hydra (PMI)   5 Slurm step   6 PMIx   7 none
//
// The first rule that matches decides. The rules read variables only; a batch script of Slurm, which sees SLURM_NTASKS and no step, is
// a process alone.
package launch
