package train

import (
	"fmt"
	"testing"

	"triax/comm/local"
	"triax/configs"
	"triax/nn"
)

// TestB45OverlapIsBitEqual: overlapped communication, any prefetch distance, and parameters kept after forward change no bit of any
// gradient, norm, weight or moment, at every ZeRO stage, in a pipeline with a tied table (B39, B42, B45).
func TestB45OverlapIsBitEqual(t *testing.T) {
	for stage := range 4 {
		t.Run(fmt.Sprintf("zero%d", stage), func(t *testing.T) {
			make := func() *configs.Config {
				c := base()
				c.Mesh.PP, c.Mesh.DP, c.Mesh.Replicate, c.Mesh.TP = 2, 2, 2, 2
				c.Pipeline.Schedule, c.Pipeline.Microbatches = "zb-v", 3
				c.Model.Tied, c.Zero.Stage = true, stage
				return c
			}
			corpus := letters(t, 17, gridTokens)
			want, plain := cutRun(t, make(), corpus)
			for prefetch := 1; prefetch <= 3; prefetch++ {
				for _, keep := range []bool{false, true} {
					c := make()
					c.Zero.Overlap, c.Zero.Prefetch, c.Zero.KeepAfterForward = true, prefetch, keep
					got, res := cutRun(t, c, corpus)
					if d := compare(got, want); d.relative != 0 {
						t.Errorf("prefetch %d, keep %v: relative difference %.3g at %s", prefetch, keep, d.relative, d.where)
					}
					if !keep && fmt.Sprint(calls(res)) != fmt.Sprint(calls(plain)) {
						t.Errorf("prefetch %d: calls %v, without overlap %v", prefetch, calls(res), calls(plain))
					}
				}
			}
		})
	}
}

// calls lists calls and bytes of a step.
func calls(r *Result) (out []string) {
	for _, e := range r.Comm {
		out = append(out, e.String())
	}
	return out
}

// TestB41MessagesKeepTheirMemory: with messages that are copied late, held back at random or handed over only when both ends meet, a
// run gives the same bits: nobody touches memory that is still being sent (B40, B41, B68, B69).
func TestB41MessagesKeepTheirMemory(t *testing.T) {
	for _, name := range []string{"1f1b", "interleaved", "zb-h1", "zb-v"} {
		t.Run(name, func(t *testing.T) {
			c := base()
			c.Mesh.PP, c.Mesh.CP, c.Mesh.TP = 2, 2, 2
			c.Pipeline.Schedule, c.Pipeline.Microbatches = name, 6
			c.Model.Tied = true
			c.Train.Steps = 2
			corpus := letters(t, 17, gridTokens)
			want, _ := cutRun(t, c, corpus)
			for what, opts := range transports() {
				got, _ := cutRun(t, c, corpus, opts...)
				if d := compare(got, want); d.relative != 0 {
					t.Errorf("%s: relative difference %.3g at %s", what, d.relative, d.where)
				}
			}
		})
	}
}

func transports() map[string][]local.Option {
	return map[string][]local.Option{
		"copied late": {local.Copied(), local.Delayed(jitter)},
		"rendezvous":  {local.Rendezvous()},
		"delayed":     {local.Delayed(jitter), local.Rendezvous(), local.Copied()},
	}
}

// TestTensorOverlapIsBitEqual: summing input gradients beside weight gradients changes no bit.
func TestTensorOverlapIsBitEqual(t *testing.T) {
	for _, sequence := range []bool{false, true} {
		c := base()
		c.Mesh.TP, c.Mesh.PP, c.Mesh.SequenceParallel, c.Pipeline.Microbatches = 4, 2, sequence, 3
		c.Model.Recompute, c.Model.RecomputeLayers = nn.RecomputeFull, 2
		corpus := letters(t, 17, gridTokens)
		want, plain := cutRun(t, c, corpus)
		over := *c
		over.Mesh.TPOverlap = true
		got, res := cutRun(t, &over, corpus)
		if d := compare(got, want); d.relative != 0 {
			t.Errorf("sequence parallel %v: relative difference %.3g at %s", sequence, d.relative, d.where)
		}
		if fmt.Sprint(calls(res)) != fmt.Sprint(calls(plain)) {
			t.Errorf("sequence parallel %v: calls %v, without overlap %v", sequence, calls(res), calls(plain))
		}
	}
}
