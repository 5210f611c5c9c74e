package launch

import (
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		env, say string
	}{
		"nothing":     {"", "launcher: none"},
		"own":         {"TRIAX_RANK=1 TRIAX_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=8", "launcher: own variables, rank 1 of 2"},
		"torchrun":    {"RANK=3 WORLD_SIZE=8 MASTER_ADDR=a LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", "launcher: torchrun, rank 3 of 8, 1 of 2 on this host"},
		"half":        {"RANK=3 WORLD_SIZE=8", "launcher: none"},
		"openmpi":     {"OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=7 PMIX_NAMESPACE=x", "launcher: Open MPI, rank 7 of 8, 3 of 4 on this host"},
		"hydra":       {"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4", "launcher: hydra (PMI), rank 0 of 4, 0 of 4 on this host"},
		"slurm":       {"SLURM_NTASKS=4 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=0", "launcher: Slurm step, rank 2 of 4"},
		"slurm batch": {"SLURM_NTASKS=4 SLURM_PROCID=0", "launcher: none"},
		"pmix":        {"PMIX_RANK=5 PMIX_NAMESPACE=job", "launcher: PMIx, rank 5"},
		"no number":   {"PMI_RANK=a PMI_SIZE=4", `error: PMI_RANK = "a"`},
		"outside":     {"PMI_RANK=4 PMI_SIZE=4", "error: PMI_RANK = 4, and PMI_SIZE = 4: ranks are 0 to 3"},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(pair, "=")
			env[k] = v
		}
		p, err := Detect(func(k string) string { return env[k] })
		got := p.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, c.say) {
			t.Errorf("%s: got %q, want %q", name, got, c.say)
		}
	}
}
