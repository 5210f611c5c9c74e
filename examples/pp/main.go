// Command pp tells pipeline parallelism: a schedule is a list of ops for each rank. It is drawn, verified, put on a clock, and
// walked for real by two ranks whose stages add one and double.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/pp"
	"triax/schedule"
	"triax/tensor"
)

const micros = 4

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	for _, name := range []string{"gpipe", "1f1b", "zb-h1"} {
		s, err := schedule.New(name, 4, 8, 0)
		if err != nil {
			return err
		}
		text, err := schedule.Draw(s, schedule.Uniform(1, 1, 1))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, text)
	}

	s, err := schedule.New("1f1b", 2, micros, 0)
	if err != nil {
		return err
	}
	if err := schedule.Verify(s); err != nil { // every op once, needs met, no deadlock
		return err
	}
	world := local.New(2, local.Linked(time.Millisecond, 0))
	defer world.Close()
	last := &stage{}
	stages := []pp.Stage{&stage{first: true}, last}
	g, ctx := errgroup.WithContext(context.Background())
	for rank := range 2 {
		g.Go(func() error {
			heap := tensor.NewHeap(nil, false)
			r := &pp.Runner{
				Schedule: s, Rank: rank, World: []int{0, 1}, Stages: map[int]pp.Stage{rank: stages[rank]},
				Update:  func(context.Context) error { return nil },
				Message: comm.Spec{Kind: tensor.Activations, DType: tensor.F64, Shape: []int{1}},
				Wire:    world.Rank(rank, heap), Ledger: &comm.Ledger{},
			}
			return r.Run(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "2 (m + 1) of the microbatches, in the order of the schedule: %v\n", last.seen)
	return nil
}

// stage adds one to the microbatch's number where it is the first, and doubles what it gets where it is the second.
type stage struct {
	first bool
	seen  []float64
}

func (s *stage) Forward(_ context.Context, micro int, x *tensor.Tensor) (*tensor.Tensor, error) {
	if s.first {
		return tensor.Of(tensor.F64, []float64{float64(micro + 1)}, 1), nil
	}
	s.seen = append(s.seen, 2*x.F64()[0])
	return nil, nil
}

func (s *stage) Backward(context.Context, int, *tensor.Tensor) (*tensor.Tensor, error) {
	if s.first {
		return nil, nil
	}
	return tensor.Of(tensor.F64, []float64{2}, 1), nil
}

func (s *stage) BackwardInput(ctx context.Context, micro int, dy *tensor.Tensor) (*tensor.Tensor, error) {
	return s.Backward(ctx, micro, dy)
}
func (s *stage) BackwardWeight(context.Context, int) error { return nil }
func (s *stage) Reduce(context.Context) error              { return nil }
