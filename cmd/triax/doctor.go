package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"triax/comm"
	"triax/launch"
	"triax/train"
)

func doctorCmd() *cobra.Command {
	var flight string
	var archs []string
	var perHost int
	var r ranks
	cmd := &cobra.Command{
		Use:   "doctor [CONFIG.toml]",
		Short: "Show this machine's GPUs, the mesh on the hosts, or which rank left the others after a failure",
		Example: `  triax doctor
  triax doctor job.toml --per-host 4
  triax doctor --kernels sm_80,sm_90
  mpirun -n 16 --hostfile hosts triax doctor job.toml --ranks mpi
  triax doctor --flight runs/job/flight`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flight != "" {
				return doctorFlight(cmd, flight)
			}
			if len(archs) > 0 {
				return doctorKernels(cmd.OutOrStdout(), archs)
			}
			if len(args) == 0 {
				fmt.Fprint(cmd.OutOrStdout(), machineText(look()))
				fmt.Fprint(cmd.OutOrStdout(), librariesText())
				return nil
			}
			cfg, err := loadConfig(cmd, args[0])
			if err != nil {
				return err
			}
			m, err := cfg.Mesh.Grid()
			if err != nil {
				return err
			}
			if err := r.open(cmd.Context(), cmd.ErrOrStderr()); err != nil {
				return r.failed(err)
			}
			p := launch.Even(m, max(1, perHost))
			if r.world == nil {
				if perHost == 0 {
					p = launch.Even(m, m.Size())
				}
				fmt.Fprint(cmd.OutOrStdout(), p)
				if m, _, err := look(); err == nil {
					fmt.Fprint(cmd.OutOrStdout(), onDevices(p, m))
				}
				return nil
			}
			if n := r.world.Size(); n != m.Size() {
				return r.failed(requestError{fmt.Errorf("doctor: the mesh has %d ranks, and the launcher started %d processes", m.Size(), n)})
			}
			if p.Hosts, err = r.hosts(cmd); err != nil {
				return r.failed(err)
			}
			if r.first() {
				fmt.Fprint(cmd.OutOrStdout(), p)
			}
			defer r.line.Close()
			return r.closed()
		},
	}
	addConfigFlags(cmd)
	r.flags(cmd)
	cmd.Flags().StringVar(&flight, "flight", "", "folder of flight records, in a failed run's folder")
	cmd.Flags().StringSliceVar(&archs, "kernels", nil, "compile all kernels for these architectures (sm_80,sm_90) and show what they ask of a device; needs NVIDIA's run-time compiler, and no GPU")
	cmd.Flags().IntVar(&perHost, "per-host", 0, "ranks a host, where no launcher says (default all on one)")
	return cmd
}

// hosts are the names of all ranks' hosts, on rank 0.
func (r *ranks) hosts(cmd *cobra.Command) ([]string, error) {
	own, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	r.world.Report(func() string { return own })
	hosts := make([]string, r.world.Size())
	if !r.first() {
		_, err := r.world.Agree(cmd.Context(), "") // rank 0 has heard everyone
		return hosts, err
	}
	all := make([]int, 0, len(hosts))
	for rank := 1; rank < len(hosts); rank++ {
		all = append(all, rank)
	}
	hosts[0] = own
	for deadline := time.Now().Add(10 * time.Second); ; {
		heard := r.world.RollCall(all, time.Second)
		for rank, name := range heard {
			hosts[rank] = name
		}
		missing := slices.Index(hosts, "") // it may not have set its name yet
		if missing < 0 {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("rank %d does not say where it is", missing)
		}
	}
	_, err = r.world.Agree(cmd.Context(), "")
	return hosts, err
}

// doctorFlight compares what ranks had called when a run failed.
func doctorFlight(cmd *cobra.Command, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "rank-*.json"))
	if err != nil || len(files) == 0 {
		return requestError{fmt.Errorf("--flight: %s has no flight records (rank-0000.json ...): %v", dir, err)}
	}
	var all []train.Flight
	groups := map[string][]comm.Sequence{}
	ranks := map[int]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var f train.Flight
		if err := json.Unmarshal(text, &f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all, ranks[f.Rank] = append(all, f), true
		for _, s := range f.Sequences {
			groups[s.Group] = append(groups[s.Group], s)
		}
	}
	fmt.Fprint(cmd.OutOrStdout(), diverged(all, groups, ranks))
	return nil
}

// diverged says who left the others: the rank without a record; else the one that most others found silent; else the one that is most calls behind.
func diverged(all []train.Flight, groups map[string][]comm.Sequence, ranks map[int]bool) string {
	gone, silent, behind := map[int]int{}, map[int]int{}, map[int]int{}
	var differ []string
	for name, members := range groups {
		for _, rank := range membersOf(name) {
			if !ranks[rank] {
				gone[rank] = 1
			}
		}
		most := slices.MaxFunc(members, func(a, b comm.Sequence) int { return a.Calls - b.Calls })
		for _, m := range members {
			if err := comm.SameSequence(most, m); err != nil {
				differ = append(differ, err.Error())
				behind[m.Rank] += 1 + most.Calls - m.Calls
			}
		}
	}
	slices.Sort(differ)
	for _, f := range all {
		for _, list := range silentRanks.FindAllString(f.Error, -1) {
			for _, m := range numberOfRank.FindAllStringSubmatch(list, -1) {
				if rank, err := strconv.Atoi(m[1]); err == nil {
					silent[rank]++
				}
			}
		}
	}
	for rank := range gone { // of several without a record, the one that others found silent: a launcher that ends all leaves no records either
		gone[rank] += silent[rank]
	}
	var b strings.Builder
	switch {
	case len(gone) > 0:
		fmt.Fprintf(&b, "%s left the others first: no record, so killed, stopped or cut off\n", foremost(gone))
	case len(silent) > 0:
		fmt.Fprintf(&b, "%s left the others first: did not answer them\n", foremost(silent))
	case len(differ) > 0:
		fmt.Fprintf(&b, "%s left the others first: furthest behind\n", foremost(behind))
	default:
		fmt.Fprintln(&b, "all ranks have called the same collectives")
	}
	for _, d := range differ {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	for _, f := range all {
		fmt.Fprintf(&b, "%s on %s ended with: %s\n", f.Place, f.Host, f.Error)
	}
	return b.String()
}

var (
	silentRanks  = regexp.MustCompile(`rank \d+ \([^)]*\)(?: and rank \d+ \([^)]*\))* does not answer`)
	numberOfRank = regexp.MustCompile(`rank (\d+)`)
)

// foremost names the ranks with the most votes: "rank 4", "rank 4 or rank 5".
func foremost(votes map[int]int) string {
	most := 0
	for _, n := range votes {
		most = max(most, n)
	}
	var names []string
	for _, rank := range slices.Sorted(maps.Keys(votes)) {
		if votes[rank] == most {
			names = append(names, fmt.Sprint("rank ", rank))
		}
	}
	return strings.Join(names, " or ")
}

// membersOf reads the ranks in a group's name: "tp [0 1]".
func membersOf(name string) (ranks []int) {
	_, list, _ := strings.Cut(name, "[")
	for _, word := range strings.Fields(strings.TrimSuffix(list, "]")) {
		var rank int
		if _, err := fmt.Sscan(word, &rank); err == nil {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
