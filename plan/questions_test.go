package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"triax/nn"
	"triax/plan"
	"triax/schedule"
)

// TestPublishedTimes: the four models of Korthikanti et al. 2022, table 5, on A100s, in seconds: everything made again, and sequence parallelism with the
// attention alone made again. A table of published runs is read as a user's own would be.
func TestPublishedTimes(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,gpu_type,gpus,gpus_per_node,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq_len,precision,tp,sp,pp,vp,schedule,cp,dp,micro_batch,global_batch,recompute,step_time_s\n")
	for i, x := range []struct {
		layers, hidden, heads, pp, vp, micro, batch int
		full, selective                             float64
	}{{48, 6144, 64, 1, 1, 4, 4, 1.42, 1.10}, {96, 12288, 96, 8, 3, 1, 64, 18.13, 13.75}, {105, 20480, 128, 35, 3, 1, 280, 49.05, 37.83}, {128, 25600, 160, 64, 1, 1, 512, 94.42, 71.49}} {
		for j, seconds := range []float64{x.full, x.selective} {
			fmt.Fprintf(&b, "kort-%d%d,A100-80GB,%d,8,%d,%d,%d,%d,%d,51200,2048,fp16,8,%d,%d,%d,1f1b,1,1,%d,%d,%s,%v\n", i, j, 8*x.pp, x.layers, x.hidden, x.heads, x.heads,
				4*x.hidden, j, x.pp, x.vp, x.micro, x.batch, []string{"full", "selective"}[j], seconds)
		}
	}
	rows, skipped, err := plan.ReadMeasured(strings.NewReader(b.String()))
	if err != nil || len(skipped) > 0 || len(rows) != 8 {
		t.Fatalf("%d rows, %v, %v", len(rows), skipped, err)
	}
	checked, err := plan.Check(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checked {
		near(t, c.ID+" seconds", c.Predicted, c.Seconds, 0.10)
	}
	if s := plan.Overall(checked); s.Mean > 0.0365 { // the error that Calculon states for them (Isaev et al. 2023)
		t.Errorf("%v", s)
	}
}

// TestExpertsAreNotCutOverTensorRanks: routed experts are shared out over the expert axis alone, norms and router are whole, the rest is cut over tensor
// ranks; the optimizer shards experts over the data ranks that share them, and the rest over all data ranks.
func TestExpertsAreNotCutOverTensorRanks(t *testing.T) {
	const D, H, E, L, V, tp, ep, dp = 1024, 2048, 8, 4, 32000, 2, 4, 2
	m := nn.Config{Family: nn.Llama, Layers: L, Width: D, Heads: 16, Hidden: H, Vocab: V, Sequence: 512, Experts: E, TopK: 2, Recompute: "none"}
	c := big(m, tp, 1, dp, 1, dp*ep)
	c.Mesh.EP, c.Zero.Stage = ep, 1
	p, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	cut := float64(L*4*D*D+2*V*D) / tp
	whole := float64(L*(2*D+E*D) + D)
	experts := float64(L*3*D*H*E) / ep
	near(t, "weights", p.Memory[0].Weights, 2*(cut+whole+experts), 1e-12)
	near(t, "states", p.Memory[0].States, 12*((cut+whole)/(dp*ep)+experts/dp), 1e-3) // shards are padded to equal lengths
}

// warned finds a plan's warning.
func warned(p *plan.Plan, of string) bool {
	return strings.Contains(strings.Join(p.Warnings, "\n"), of)
}

// TestNothingLeftToSave: who expects selective recomputation to keep 34/(34+80) of the activations, since it drops the scores of attention, is told that tiled
// attention keeps none.
func TestNothingLeftToSave(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 8, Width: 2048, Heads: 16, Vocab: 51200, Sequence: 2048, Recompute: "selective"}
	c := big(m, 1, 1, 1, 1, 4)
	p, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if !warned(p, "no scores") {
		t.Errorf("warned only of %q", p.Warnings)
	}
	kept := p.Memory[0].Activations
	c.Model.Recompute = "none"
	if p, err = plan.New(c); err != nil {
		t.Fatal(err)
	}
	if kept < 0.7*p.Memory[0].Activations {
		t.Errorf("it saves %s of %s all the same", plan.Bytes(p.Memory[0].Activations-kept), plan.Bytes(p.Memory[0].Activations))
	}
}

// TestSplitBackwardAndRecomputation: a zero-bubble schedule with recomputation is warned about, and holds more than 1F1B with it; without it, it is faster.
func TestSplitBackwardAndRecomputation(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 16, Width: 2048, Heads: 16, Vocab: 51200, Sequence: 2048}
	of := func(name, again string) *plan.Plan {
		m.Recompute = again
		c := big(m, 1, 8, 1, 8, 8)
		c.Pipeline.Schedule = name
		p, err := plan.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := of("1f1b", "full"), of("zb-h1", "full")
	if warned(a, "splits backward") || !warned(b, "splits backward") {
		t.Errorf("warned of %q and %q", a.Warnings, b.Warnings)
	}
	if x, y := a.Memory[0].Activations, b.Memory[0].Activations; y <= x {
		t.Errorf("activations: %s under 1f1b, %s under zb-h1", plan.Bytes(x), plan.Bytes(y))
	}
	if x, y := of("1f1b", "none").TokensPerS, of("zb-h1", "none").TokensPerS; y <= 1.05*x {
		t.Errorf("nothing made again: %.0f tokens/s under 1f1b, %.0f under zb-h1", x, y)
	}
}

// TestOneMoreActivation: DualPipe-V holds 2p+1 chunks of the two a rank has on every rank, one more than the pipeline is deep in chunks, because the
// forward that runs beside a backward takes its memory before that backward gives its own back.
func TestOneMoreActivation(t *testing.T) {
	for p := 2; p <= 8; p++ {
		s, err := schedule.New("dualpipe-v", p, 3*p, 0)
		if err != nil {
			t.Fatal(err)
		}
		for r, n := range schedule.InFlight(s) {
			if n != 2*p+1 {
				t.Errorf("p %d, rank %d: %d chunks in flight, want %d", p, r, n, 2*p+1)
			}
		}
	}
}

// TestManyMicrobatches: 32,768 microbatches are planned like 32: each costs what one costs, and warm-up and drain stay what they were.
func TestManyMicrobatches(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 8, Width: 1024, Heads: 16, Vocab: 51200, Sequence: 512, Recompute: "none"}
	at := func(micros int) float64 {
		p, err := plan.New(big(m, 1, 4, 1, micros, micros))
		if err != nil {
			t.Fatal(err)
		}
		return p.Step.Seconds
	}
	each := (at(64) - at(32)) / 32
	if got, want := at(32768), at(32)+(32768-32)*each; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("32,768 microbatches take %s, want %s", plan.Seconds(got), plan.Seconds(want))
	}
}
