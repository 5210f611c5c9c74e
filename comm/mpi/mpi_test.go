//go:build cgo && linux

package mpi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"triax/comm/commtest"
	"triax/tensor"
)

// launchers are the two families as Debian names them, which can be installed side by side.
var launchers = []struct {
	family, path string
	args         []string
}{
	{"Open MPI", "mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe", "--mca", "btl_base_warn_component_unused", "0"}},
	{"MPICH", "mpiexec.mpich", nil},
}

// child is set in processes that a launcher starts.
const child = "TRIAX_MPI_CHILD"

var mine *engine // of a child

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	var err error
	if mine, err = start(os.Getenv(child), onHost()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	fmt.Fprintf(os.Stderr, "\nrank %d of %d under %s: code %d\n", mine.rank, mine.size, mine.lib.family(), code)
	if err := mine.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// onHost is how many children there are.
func onHost() int {
	n, err := strconv.Atoi(os.Getenv("OMPI_COMM_WORLD_LOCAL_SIZE") + os.Getenv("MPI_LOCALNRANKS"))
	if err != nil {
		return 8
	}
	return n
}

// under runs this binary's tests of a name as so many processes of each family.
func under(t *testing.T, ranks int, name string) {
	t.Helper()
	if os.Getenv(child) != "" {
		t.Skip("a child runs the children's tests")
	}
	for _, l := range launchers {
		t.Run(l.family, func(t *testing.T) {
			path, err := exec.LookPath(l.path)
			if err != nil {
				if os.Getenv("TRIAX_MPI") == "1" {
					t.Fatal(err)
				}
				t.Skipf("no %s here", l.path)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			args := append(append([]string{}, l.args...), "-n", fmt.Sprint(ranks), os.Args[0], "-test.run", "^"+name+"$", "-test.v", "-test.short")
			c := exec.CommandContext(ctx, path, args...)
			c.Env = append(os.Environ(), child+"="+l.family)
			var out bytes.Buffer
			c.Stdout, c.Stderr = &out, &out
			err = c.Run()
			for rank := range ranks {
				if !strings.Contains(out.String(), fmt.Sprintf("rank %d of %d under %s: code 0", rank, ranks, l.family)) {
					t.Errorf("rank %d did not pass", rank)
				}
			}
			if err != nil || t.Failed() {
				t.Fatalf("%v\n%s", err, tail(out.String()))
			}
		})
	}
}

func tail(s string) string { return s[max(0, len(s)-12000):] }

// opened is a world of the first processes.
func opened(t *testing.T, size int) []commtest.Rank {
	if size > mine.size || mine.rank >= size {
		t.Skip("this process is not in the world")
	}
	all := make([]int, size)
	for i := range all {
		all[i] = i
	}
	w, err := mine.world(all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.leave)
	mem := commtest.Host()
	return []commtest.Rank{{Wire: w.Transport(mem.Heap()), Mem: mem}}
}

func TestConformance(t *testing.T) { under(t, 5, "TestChildConformance") }

func TestChildConformance(t *testing.T) {
	if mine == nil {
		t.Skip("run by TestConformance")
	}
	commtest.Run(t, opened, tensor.F32, tensor.F64, tensor.BF16)
}

// TestChunks: with calls of at most a few elements all results are the same.
func TestChunks(t *testing.T) { under(t, 5, "TestChildChunks") }

func TestChildChunks(t *testing.T) {
	if mine == nil {
		t.Skip("run by TestChunks")
	}
	defer func(n int) { maxCount = n }(maxCount)
	defer func(n int) { pieceBytes = n }(pieceBytes)
	maxCount, pieceBytes = 333, 200
	commtest.RunCollectives(t, opened, tensor.F32, tensor.F64)
	commtest.RunMessages(t, opened)
}
