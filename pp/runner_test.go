package pp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"triax/comm"
	"triax/comm/local"
	"triax/pp"
	"triax/schedule"
)

// jitter holds every message back by up to 7 ms, each line of messages differently.
func jitter(from, to int, tag comm.Tag) time.Duration {
	return time.Duration((from*5+to*3+tag.Micro*11+tag.Stage*7+int(tag.Kind))%8) * time.Millisecond
}

// TestB67AnyTransport: whatever the transport does to messages (no buffers, delays, another order between tags, late copies), every schedule
// computes the same numbers, and those of one rank that holds all stages (B40, B68, B69).
func TestB67AnyTransport(t *testing.T) {
	cost := func(o schedule.Op) time.Duration { return time.Duration(1+(3*o.Stage+o.Micro)%4) * time.Millisecond }
	transports := map[string][]local.Option{
		"plain": nil, "rendezvous": {local.Rendezvous()}, "delayed": {local.Delayed(jitter)},
		"reordered": {local.Reordered(5, 6*time.Millisecond)}, "copied late": {local.Copied(), local.Delayed(jitter), local.Rendezvous()},
	}
	for _, name := range schedule.Names() {
		for _, size := range [][2]int{{2, 2}, {3, 7}, {4, 8}} {
			if schedule.Check(name, size[0], size[1], 0) != nil {
				continue
			}
			s := made(t, name, size[0], size[1])
			want := alone(t, s)
			for what, opts := range transports {
				t.Run(fmt.Sprintf("%s p%d m%d/%s", name, size[0], size[1], what), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l := newLine(s, cost, nil, opts...)
						defer l.close(t)
						if err := l.step(t.Context()); err != nil {
							t.Fatal(err)
						}
						grads, losses := l.results()
						if got := fmt.Sprint(grads, losses); got != want {
							t.Errorf("got %s, want %s", got, want)
						}
						if len(losses) != s.Micros || slices.Contains(grads, 0) {
							t.Errorf("%d losses, gradients %v", len(losses), grads)
						}
					})
				})
			}
		}
	}
}

// alone is the outcome of one rank that holds all of a schedule's stages and takes one microbatch after the other.
func alone(t *testing.T, s *schedule.Schedule) string {
	l := newLine(schedule.LoopedBFS(1, s.Micros, s.Stages), nil, nil)
	defer l.close(t)
	if err := l.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(l.results())
}

// TestB80FlatMemory: a step leaves nothing behind, and settled steps ask for no memory.
func TestB80FlatMemory(t *testing.T) {
	for _, name := range schedule.Names() {
		l := newLine(made(t, name, 3, 6), nil, nil)
		var fresh int64
		for step := range 12 {
			if err := l.step(context.Background()); err != nil {
				t.Fatal(err)
			}
			total := int64(0)
			for r, h := range l.heaps {
				if now := h.Total().Now; now != 0 {
					t.Errorf("%s: rank %d holds %d bytes after step %d", name, r, now, step)
				}
				total += h.Fresh()
			}
			if step == 5 {
				fresh = total
			}
			if step > 5 && total > 2*fresh {
				t.Errorf("%s: %d fresh bytes after step %d, %d after step 5", name, total, step, fresh)
			}
		}
		l.close(t)
	}
}

// TestFailureNamesOp: a stage that fails or panics, at any op of any rank, stops all ranks, and the error names rank and op.
func TestFailureNamesOp(t *testing.T) {
	planted := errors.New("planted")
	s := made(t, "interleaved", 3, 4)
	for rank, ops := range s.Ranks {
		for i, op := range ops {
			for _, panics := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					n := 0
					l := newLine(s, func(schedule.Op) time.Duration { return time.Millisecond }, func(r int, o schedule.Op) error {
						if r != rank {
							return nil
						}
						if n++; n <= i {
							return nil
						}
						if panics {
							panic(planted)
						}
						return planted
					}, local.Delayed(jitter))
					err := l.step(t.Context())
					if !errors.Is(err, planted) || !strings.HasPrefix(err.Error(), fmt.Sprintf("rank %d: %v: ", rank, op)) {
						t.Errorf("op %d of rank %d: %.200v", i, rank, err)
					}
					var p *pp.Panic
					if errors.As(err, &p) != panics {
						t.Errorf("op %d of rank %d: panic %v seen as %v", i, rank, panics, !panics)
					}
				})
			}
		}
	}
}

// TestCancelled: ending the context stops every rank with its cause, whatever it is doing.
func TestCancelled(t *testing.T) {
	stop := errors.New("stop")
	s := made(t, "zb-h1", 4, 8)
	for at := time.Duration(0); at < 30*time.Millisecond; at += 2 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			l := newLine(s, func(schedule.Op) time.Duration { return 3 * time.Millisecond }, nil, local.Linked(time.Millisecond, 0))
			time.AfterFunc(at, func() { cancel(stop) })
			if err := l.step(ctx); !errors.Is(err, stop) {
				t.Errorf("after %v: %v", at, err)
			}
			if took := time.Since(l.begin); took > at+4*time.Millisecond {
				t.Errorf("after %v it took until %v", at, took)
			}
		})
	}
}

// BenchmarkBubble sleeps in place of computing, so that ranks need no cores: the measured idle share of the whole step, in percent, beside
// the scheduled one.
func BenchmarkBubble(b *testing.B) {
	const unit = 4 * time.Millisecond
	for _, name := range []string{"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"} {
		for _, p := range []int{2, 4} {
			b.Run(fmt.Sprintf("%s/p%d", name, p), func(b *testing.B) {
				s := made(b, name, p, 8)
				d := unit / time.Duration(s.Chunks())
				c := schedule.Uniform(d, d, d)
				want, err := schedule.Simulate(s, c)
				if err != nil {
					b.Fatal(err)
				}
				measured, steps := 0.0, 0
				for b.Loop() {
					l := newLine(s, c.Time, nil)
					if err := l.step(b.Context()); err != nil {
						b.Fatal(err)
					}
					took, busy := time.Since(l.begin), time.Duration(0)
					for _, spans := range l.spans {
						for _, x := range spans {
							busy += x.End.Sub(x.Start)
						}
					}
					measured += 1 - float64(busy)/float64(took*time.Duration(p))
					steps++
				}
				b.ReportMetric(100*measured/float64(steps), "%measured")
				b.ReportMetric(100*want.Bubble(), "%scheduled")
			})
		}
	}
}
