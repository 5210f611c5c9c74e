package commtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"triax/comm"
	"triax/tensor"
)

// Rank is one rank of a world under test.
type Rank struct {
	Wire comm.Transport
	// Mem is the memory whose tensors the transport carries, with the heap that received tensors come from. Host makes one
	// of plain Go slices.
	Mem tensor.Memory
}

// Open makes a world of so many ranks, and has it closed by t.Cleanup. It skips t where it cannot have that many. Where ranks are processes, all of them
// run the suite, and each gets the one rank that it is; those that are not in the world skip t.
type Open func(t *testing.T, size int) []Rank

// Run checks a transport. reductions are the types that it can reduce; none means float32 and float64.
func Run(t *testing.T, open Open, reductions ...tensor.DType) {
	if len(reductions) == 0 {
		reductions = []tensor.DType{tensor.F32, tensor.F64}
	}
	RunCollectives(t, open, reductions...)
	t.Run("SameBits", func(t *testing.T) { sameBits(t, open, reductions) })
	t.Run("InPlaceGather", func(t *testing.T) { inPlaceGather(t, open) })
	t.Run("Subgroups", func(t *testing.T) { subgroups(t, open) })
	t.Run("B77GroupsOfOneOrder", func(t *testing.T) { groupsOfOneOrder(t, open) })
	t.Run("ConcurrentGroups", func(t *testing.T) { concurrentGroups(t, open) })
	t.Run("Join", func(t *testing.T) { join(t, open) })
	t.Run("Mismatch", func(t *testing.T) { mismatch(t, open) })
	t.Run("Cancelled", func(t *testing.T) { cancelled(t, open) })
	RunMessages(t, open)
}

// RunCollectives is the checks of what collectives compute alone.
func RunCollectives(t *testing.T, open Open, reductions ...tensor.DType) {
	t.Run("Collectives", func(t *testing.T) { collectives(t, open, reductions) })
}

// RunMessages is the checks of messages alone.
func RunMessages(t *testing.T, open Open) {
	t.Run("Messages", func(t *testing.T) { messages(t, open) })
	t.Run("Ownership", func(t *testing.T) { ownership(t, open) })
	t.Run("B69CrossedMessages", func(t *testing.T) { crossedMessages(t, open) })
	t.Run("B68LargeMessages", func(t *testing.T) { largeMessages(t, open) })
	t.Run("WrongMessage", func(t *testing.T) { wrongMessage(t, open) })
	t.Run("CancelledAtAnyMoment", func(t *testing.T) { cancelledAtAnyMoment(t, open) })
}

// deadline is when a world counts as hung.
const deadline = 2 * time.Minute

// Play runs f once for every rank, each in its own goroutine, and returns their errors by rank. The first error ends
// the context of all others; so does the deadline, with what each rank was doing.
func Play(ctx context.Context, ranks []Rank, f func(ctx context.Context, r Rank) error) []error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	recorders := make([]*comm.Recorder, len(ranks))
	for i, r := range ranks {
		recorders[i] = comm.NewRecorder(r.Wire.Rank())
	}
	timer := time.AfterFunc(deadline, func() { end(hung(recorders)) })
	defer timer.Stop()
	errs := make([]error, len(ranks))
	var all sync.WaitGroup
	for i, r := range ranks {
		r.Wire = comm.Recorded(r.Wire, recorders[i])
		all.Go(func() {
			if errs[i] = f(ctx, r); errs[i] != nil {
				end(fmt.Errorf("rank %d stopped: %w", r.Wire.Rank(), errs[i]))
			}
		})
	}
	all.Wait()
	return errs
}

func hung(recorders []*comm.Recorder) error {
	said := make([]string, len(recorders))
	for i, r := range recorders {
		if said[i] = r.UnderWay(); said[i] == "" {
			said[i] = "in no call"
		}
		said[i] = fmt.Sprintf("rank %d: %s", i, said[i])
	}
	return fmt.Errorf("hung: %s", strings.Join(said, "; "))
}

// must is Play for worlds in which nothing may go wrong.
func must(t *testing.T, ranks []Rank, f func(ctx context.Context, r Rank) error) {
	t.Helper()
	for i, err := range Play(t.Context(), ranks, f) {
		if err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// upTo is 0, 1, ... n-1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// all joins the group of all ranks.
func all(ctx context.Context, r Rank) (comm.Collective, error) {
	return r.Wire.Join(ctx, "all", upTo(r.Wire.Size()))
}

// numbers is a tensor with values f(0), f(1), ...
func (r Rank) numbers(dtype tensor.DType, n int, f func(i int) float64) *tensor.Tensor {
	t := r.Mem.Heap().New(tensor.Buffers, dtype, n)
	values := make([]float64, n)
	for i := range values {
		values[i] = f(i)
	}
	r.Mem.Upload(t, values)
	return t
}

func (r Rank) values(t *tensor.Tensor) []float64 {
	values := make([]float64, t.Len())
	r.Mem.Download(values, t)
	return values
}

// equal says where a tensor differs from want(0), want(1), ...
func (r Rank) equal(what string, t *tensor.Tensor, want func(i int) float64) error {
	for i, x := range r.values(t) {
		if w := want(i); x != w {
			return fmt.Errorf("%s: element %d of %v is %v, want %v", what, i, t, x, w)
		}
	}
	return nil
}
