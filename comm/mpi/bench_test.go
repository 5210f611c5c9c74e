//go:build cgo && linux

package mpi

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"triax/comm"
	"triax/tensor"
)

// TestChildAllReduce prints the median time of an all-reduce of TRIAX_MIB MiB among all processes, for tools/bench/allreduce.sh.
func TestChildAllReduce(t *testing.T) {
	mib, err := strconv.Atoi(os.Getenv("TRIAX_MIB"))
	if mine == nil || err != nil {
		t.Skip("run by tools/bench/allreduce.sh")
	}
	n := mib << 18
	wire := opened(t, mine.size)[0].Wire
	all := make([]int, mine.size)
	for i := range all {
		all[i] = i
	}
	g, err := wire.Join(t.Context(), "all", all)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = 0
	}
	data := tensor.Of(tensor.F32, x, n)
	var took []time.Duration
	for i := range 23 {
		if _, err := g.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := g.AllReduce(t.Context(), data, comm.Sum); err != nil {
			t.Fatal(err)
		}
		if i >= 2 {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	if mine.rank == 0 {
		fmt.Printf("triax:   %d ranks, %d MiB: median %.2f ms\n", mine.size, mib, took[len(took)/2].Seconds()*1e3)
	}
}
