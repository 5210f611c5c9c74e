package launch

import (
	"fmt"
	"strconv"
)

// Place is where a launcher has put this process.
type Place struct {
	Rule       string // by which it was found: "Open MPI", ...; "none"
	Rank, Size int    // Size 0: the launcher does not say
	Local      int    // among the processes of this host; -1 where unknown
	LocalSize  int    // 0 where unknown
	Family     string // of MPI libraries that this launcher serves: "Open MPI", "MPICH", or "" for any
	MPI        bool   // an MPI world can be formed
	Bound      bool   // to some of the host's cores, by Open MPI
}

// String is the line that a run prints at its start.
func (p Place) String() string {
	switch {
	case p.Rule == None:
		return "launcher: none"
	case p.Size == 0:
		return fmt.Sprintf("launcher: %s, rank %d", p.Rule, p.Rank)
	case p.LocalSize == 0:
		return fmt.Sprintf("launcher: %s, rank %d of %d", p.Rule, p.Rank, p.Size)
	}
	return fmt.Sprintf("launcher: %s, rank %d of %d, %d of %d on this host", p.Rule, p.Rank, p.Size, p.Local, p.LocalSize)
}

// The rules' names.
const (
	Own      = "own variables"
	Torchrun = "torchrun"
	OpenMPI  = "Open MPI"
	Hydra    = "hydra (PMI)"
	Slurm    = "Slurm step"
	PMIx     = "PMIx"
	None     = "none"
)

// rule reads rank, size, local rank and local size; a process matches when it has all of need.
type rule struct {
	name, family                 string
	need                         []string
	rank, size, local, localSize string
	mpi                          bool
}

// rules in their order.
var rules = []rule{
	{Own, "", []string{"TRIAX_RANK", "TRIAX_WORLD_SIZE"}, "TRIAX_RANK", "TRIAX_WORLD_SIZE", "TRIAX_LOCAL_RANK", "TRIAX_LOCAL_SIZE", true},
	{Torchrun, "", []string{"RANK", "WORLD_SIZE", "MASTER_ADDR"}, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
	{OpenMPI, "Open MPI", []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", true},
	{Hydra, "MPICH", []string{"PMI_RANK", "PMI_SIZE"}, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
	{Slurm, "", []string{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", true},
	{PMIx, "", []string{"PMIX_RANK", "PMIX_NAMESPACE"}, "PMIX_RANK", "", "", "", true},
}

// Detect finds who started this process. A variable that a rule needs and that is no number is an error.
func Detect(env func(string) string) (Place, error) {
next:
	for _, r := range rules {
		for _, name := range r.need {
			if env(name) == "" {
				continue next
			}
		}
		if r.name == Slurm && env("SLURM_STEP_NUM_TASKS") == "1" {
			continue // a batch script, or one task: nobody to talk to
		}
		p := Place{Rule: r.name, Family: r.family, Local: -1, MPI: r.mpi, Bound: r.name == OpenMPI && env("OMPI_MCA_orte_bound_at_launch") == "1"}
		for _, x := range []struct {
			name string
			to   *int
		}{{r.rank, &p.Rank}, {r.size, &p.Size}, {r.local, &p.Local}, {r.localSize, &p.LocalSize}} {
			text := env(x.name)
			if x.name == "" || text == "" {
				continue
			}
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return Place{}, fmt.Errorf("%s = %q is no number of processes", x.name, text)
			}
			*x.to = n
		}
		if p.Size > 0 && p.Rank >= p.Size {
			return Place{}, fmt.Errorf("%s = %d, and %s = %d: ranks are 0 to %d", r.rank, p.Rank, r.size, p.Size, p.Size-1)
		}
		return p, nil
	}
	return Place{Rule: None, Size: 1, Local: 0, LocalSize: 1}, nil
}
