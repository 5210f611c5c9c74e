package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"triax/configs"
	"triax/cpu"
	"triax/tensor"
)

var errPlanted = errors.New("planted")

// failing is a device that breaks one operation of one rank after some calls.
type failing struct {
	tensor.Device
	op    string
	after int
	how   func()
}

func (f *failing) hit(op string) {
	if op == f.op {
		if f.after--; f.after == 0 {
			f.how()
		}
	}
}

func (f *failing) Gemm(c, a, b *tensor.Tensor, ta, tb bool, beta float64) {
	f.hit("gemm")
	f.Device.Gemm(c, a, b, ta, tb, beta)
}

func (f *failing) LossGrad(logits, max, sum, targets *tensor.Tensor, lo, valid int, scale float64) {
	f.hit("loss")
	f.Device.LossGrad(logits, max, sum, targets, lo, valid, scale)
}

func (f *failing) AdamW(w, g, m, v *tensor.Tensor, u tensor.AdamW) {
	f.hit("update")
	f.Device.AdamW(w, g, m, v, u)
}

func (f *failing) SumSquares(t *tensor.Tensor) float64 {
	f.hit("norm")
	return f.Device.SumSquares(t)
}

func eightRanks() *configs.Config {
	c := base()
	c.Mesh.PP, c.Mesh.DP, c.Mesh.TP = 2, 2, 2
	c.Pipeline.Microbatches, c.Model.Tied = 3, true
	c.Train.Steps = 50
	return c
}

// TestOneRankFails: whichever rank fails, panics or hangs, in whichever op and at whichever ZeRO stage, all ranks stop, the error
// names rank, coordinates, step and op, and no goroutine is left.
func TestOneRankFails(t *testing.T) {
	for stage := range 4 {
		for i, c := range []struct {
			op, place string
			rank      int
		}{
			{"gemm", "F", 0}, {"gemm", "", 5}, {"loss", "", 6}, {"loss", "B", 7}, {"update", "U", 2}, {"norm", "U", 3},
		} {
			if testing.Short() && (stage+i)%3 != 0 {
				continue
			}
			for _, overlap := range []bool{false, true} {
				t.Run(fmt.Sprintf("zero%d/%s on rank %d/overlap %v", stage, c.op, c.rank, overlap), func(t *testing.T) {
					defer goleak.VerifyNone(t)
					cfg := eightRanks()
					cfg.Zero.Stage, cfg.Zero.Overlap = stage, overlap
					start := time.Now()
					_, err := Run(context.Background(), cfg, Options{
						Corpus: letters(t, 17, gridTokens),
						Open: func(rank int) tensor.Device {
							d := tensor.Device(cpu.New(cpu.Options{Float: tensor.F64, Threads: 2}))
							if rank == c.rank {
								d = &failing{Device: d, op: c.op, after: 7, how: func() { panic(errPlanted) }}
							}
							return d
						},
					})
					if err == nil {
						t.Fatal("the run went on")
					}
					for _, want := range []string{fmt.Sprintf("rank %d (dp", c.rank), "planted", "step "} {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("%q is not in: %.300s", want, err)
						}
					}
					if took := time.Since(start); took > 20*time.Second {
						t.Errorf("it took %v", took)
					}
				})
			}
		}
	}
}

// TestCancelled: ending the context in the middle of a step, in a hang, or before the first step stops all ranks with its cause.
func TestCancelled(t *testing.T) {
	stop := errors.New("operator said stop")
	t.Run("before the first step", func(t *testing.T) {
		defer goleak.VerifyNone(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(stop)
		if _, err := Run(ctx, eightRanks(), Options{Corpus: letters(t, 17, gridTokens)}); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("in a step", func(t *testing.T) {
		defer goleak.VerifyNone(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		_, err := Run(ctx, eightRanks(), Options{Corpus: letters(t, 17, gridTokens), OnStep: func(p Progress) {
			if p.Step == 2 {
				cancel(stop)
			}
		}})
		if !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("while a rank hangs", func(t *testing.T) {
		defer goleak.VerifyNone(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
		_, err := Run(ctx, eightRanks(), Options{
			Corpus: letters(t, 17, gridTokens),
			OnWorker: func(step int, w *Worker) error {
				if step == 1 && w.wire.Rank() == 4 {
					<-ctx.Done() // a rank that waits for something that never comes
					return context.Cause(ctx)
				}
				return nil
			},
		})
		if !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}

// TestErrorOfARank: an error that a rank returns, as opposed to a panic, keeps its identity.
func TestErrorOfARank(t *testing.T) {
	defer goleak.VerifyNone(t)
	_, err := Run(context.Background(), eightRanks(), Options{
		Corpus: letters(t, 17, gridTokens),
		OnWorker: func(step int, w *Worker) error {
			if step == 2 && w.wire.Rank() == 6 {
				return errPlanted
			}
			return nil
		},
	})
	if !errors.Is(err, errPlanted) || !strings.Contains(err.Error(), "rank 6 (dp") || !strings.Contains(err.Error(), "step 2") {
		t.Errorf("got %v", err)
	}
}
