package plan_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"triax/comm"
	"triax/configs"
	"triax/nn"
	"triax/plan"
	"triax/schedule"
)

const gib = 1 << 30

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestPublishedActivations: figure 1 of Korthikanti et al. 2022, in GiB of the first rank.
func TestPublishedActivations(t *testing.T) {
	shape := func(l, h, a int) nn.Config { return nn.Config{Layers: l, Width: h, Heads: a, Sequence: 2048} }
	for _, c := range []struct {
		name            string
		m               nn.Config
		b, p, v         int
		plain, sp       float64
		selective, both float64
	}{
		{"22B", shape(48, 6144, 64), 4, 1, 1, 59.25, 39.5625, 29.25, 9.5625},
		{"175B", shape(96, 12288, 96), 1, 8, 3, 66.84375, 0, 0, 12.3515625},
		{"530B", shape(105, 20480, 128), 1, 35, 3, 114.0234375, 0, 0, 23.076171875},
	} {
		gibs := func(sequence bool, mode string) float64 {
			return plan.Korthikanti(c.m, c.b, 8, sequence, mode) * float64(c.m.Layers) * plan.InFlight(c.p, c.v) / gib
		}
		near(t, c.name+" tensor parallel", gibs(false, nn.RecomputeNone), c.plain, 1e-12)
		near(t, c.name+" sequence parallel, selective", gibs(true, nn.RecomputeSelective), c.both, 1e-12)
		if c.sp > 0 {
			near(t, c.name+" sequence parallel", gibs(true, nn.RecomputeNone), c.sp, 1e-12)
			near(t, c.name+" selective", gibs(false, nn.RecomputeSelective), c.selective, 1e-12)
		}
	}
	near(t, "530B interleaved", plan.InFlight(35, 3), 1+34.0/105, 1e-12)
	near(t, "175B interleaved", plan.InFlight(8, 3), 1.2917, 1e-4)
}

// TestPublishedStates: bytes of weights, gradients and optimizer states.
func TestPublishedStates(t *testing.T) {
	for stage, want := range []float64{120, 31.4, 16.6, 1.88} { // Rajbhandari et al. 2020, figure 1: 7.5B over 64, in GB
		near(t, "ZeRO paper", 7.5*plan.StateBytes(stage, 64, 2), want, 0.005)
	}
	near(t, "Megatron with fp32 gradients", plan.StateBytes(0, 1, 4), 18, 0)
	near(t, "its distributed optimizer over 8", plan.StateBytes(1, 8, 4), 6+12.0/8, 0)
	near(t, "ZeRO-2, 2.851B over 8, GiB", 2.851e9*plan.StateBytes(2, 8, 2)/gib, 9.96, 0.001)
	near(t, "ZeRO-3, 10B, tensor 4, 16 GPUs: GB", 10/4.0*(16+4)/4, 12.5, 0) // 2.5B of each rank's own over 4, 20 bytes with a gathered copy's gradient
}

// big is a configuration on A100s.
func big(m nn.Config, tp, pp, dp, micros, batch int) *configs.Config {
	c := configs.Default()
	c.Model = m
	c.Mesh.TP, c.Mesh.PP, c.Mesh.DP = tp, pp, dp
	c.Pipeline.Microbatches, c.Train.Batch = micros, batch
	c.Cluster = map[string]any{"gpu": "a100-80"}
	return c
}

// TestLlama7BDoesNotFit: Llama 2 7B, data parallel 8 with sharded optimizer, 2 x 4096 tokens: 46.2 GiB of states and more than 32 of activations do not
// leave room on 80 GB without recomputation.
func TestLlama7BDoesNotFit(t *testing.T) {
	m := nn.Config{Family: nn.Llama, Layers: 32, Width: 4096, Heads: 32, Hidden: 11008, Vocab: 32000, Sequence: 4096, Tied: true, Recompute: "none"}
	c := big(m, 1, 1, 8, 1, 16)
	c.Zero.Stage = 1
	p, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "parameters", float64(p.Parameters), 6.607e9, 0.001)
	w := p.Memory[0]
	near(t, "states, GiB", (w.Weights+w.Gradients+w.States)/gib, 46.2, 0.002)
	if p.Fits || w.Activations < 30*gib {
		t.Errorf("fits %v with %s of activations", p.Fits, plan.Bytes(w.Activations))
	}
	c.Model.Recompute = "full"
	if p, err = plan.New(c); err != nil || !p.Fits {
		t.Errorf("with recomputation: fits %v, %v", p.Fits, err)
	}
}

// TestQwen72B: three feed-forward matrices a layer: 72.29B parameters, less the biases that our Llama family does not have.
func TestQwen72B(t *testing.T) {
	m := nn.Config{Family: nn.Llama, Layers: 80, Width: 8192, Heads: 64, Hidden: 24576, Vocab: 152064, Sequence: 2048, Recompute: "none"}
	p, err := plan.New(big(m, 8, 1, 1, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "parameters", float64(p.Parameters), 72.29e9, 0.001)
}

// TestPublicBubbles: questions that people asked about schedules.
func TestPublicBubbles(t *testing.T) {
	span := func(name string, p, m int, f, i, w time.Duration) (time.Duration, float64) {
		s, err := schedule.New(name, p, m, 0)
		if err != nil {
			t.Fatal(err)
		}
		tl, err := schedule.Simulate(s, schedule.Uniform(f, i, w))
		if err != nil {
			t.Fatal(err)
		}
		return tl.Makespan, tl.Bubble()
	}
	// p 8, m 32, F = B = 1: GPipe and 1F1B both take 78; ZB-H1 with halves takes 71.
	for _, name := range []string{"gpipe", "1f1b"} {
		if got, bubble := span(name, 8, 32, 2, 1, 1); got != 156 || math.Abs(bubble-0.1795) > 1e-4 {
			t.Errorf("%s: %v, bubble %.4f", name, got, bubble)
		}
	}
	if got, _ := span("zb-h1", 8, 32, 2, 1, 1); got != 142 {
		t.Errorf("zb-h1: %v, want 142", got)
	}
	// (PP-1)(F+B-2W) with B whole is (p-1)(F+I-W): 7 at p 8.
	if got, _ := span("zb-h1", 8, 32, 1, 1, 1); got-96 != 7 {
		t.Errorf("zb-h1 idles %v, want 7", got-96)
	}
}

// TestZero2ReducesEveryMicrobatch: accumulation over m microbatches makes m reductions, not one.
func TestZero2ReducesEveryMicrobatch(t *testing.T) {
	c := configs.Default()
	c.Mesh.DP, c.Zero.Stage, c.Pipeline.Microbatches, c.Train.Batch = 4, 2, 6, 24
	c.Zero.BucketElements = 1 << 30
	entries, err := plan.Traffic(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind == comm.KindReduceScatter && e.Calls != 4*6*2 { // two buckets: the tied table has its own
			t.Errorf("%v, want 48 calls", e)
		}
	}
}

// TestTensorRanksOverNodes: tensor 16 on nodes of 8 pays the network; tensor 8 does not.
func TestTensorRanksOverNodes(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 8, Width: 4096, Heads: 32, Vocab: 51200, Sequence: 2048, Recompute: "none"}
	inside := func(tp int) float64 {
		p, err := plan.New(big(m, tp, 1, 16/tp, 1, 16/tp))
		if err != nil {
			t.Fatal(err)
		}
		return p.Step.Tensor
	}
	if a, b := inside(8), inside(16); b < 1.4*a {
		t.Errorf("inside layers: %s at tensor 8, %s at 16", plan.Seconds(a), plan.Seconds(b))
	}
}

// TestIllegalBatch: 23 data ranks do not divide a batch of 32: refused, with the nearest that work.
func TestIllegalBatch(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 8, Width: 1024, Heads: 16, Vocab: 51200, Sequence: 2048, Recompute: "none"}
	err := configs.Resolved(big(m, 8, 8, 23, 1, 32)).Validate()
	if err == nil || !strings.Contains(err.Error(), "train.batch = 32") || !strings.Contains(err.Error(), "23 or 46") {
		t.Errorf("got %v", err)
	}
}

// TestLongOps: ops of many seconds neither overflow nor cost more to plan.
func TestLongOps(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 8, Width: 16384, Heads: 128, Vocab: 51200, Sequence: 131072, Recompute: "none"}
	c := big(m, 1, 4, 1, 4, 4)
	c.Cluster["peak_tflops"] = 1.0
	p, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if p.Step.Seconds < 1e4 || p.Step.Bubble < 0 || p.Step.Bubble > 1 {
		t.Errorf("step %s, bubble %v", plan.Seconds(p.Step.Seconds), p.Step.Bubble)
	}
}

// TestVHoldsBothEnds: under a V the first rank has embedding and output matrix, and so more weights than under 1F1B.
func TestVHoldsBothEnds(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 8, Width: 512, Heads: 8, Vocab: 51200, Sequence: 256, Recompute: "none"}
	weights := func(name string) float64 {
		c := big(m, 1, 4, 1, 8, 8)
		c.Pipeline.Schedule = name
		p, err := plan.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p.Memory[0].Weights
	}
	if a, b := weights("zb-h1"), weights("zb-v"); b < 1.7*a {
		t.Errorf("first rank: %s under zb-h1, %s under zb-v", plan.Bytes(a), plan.Bytes(b))
	}
}

// TestLargerMicrobatch: at one global batch a larger microbatch means fewer of them: more bubble, better products.
func TestLargerMicrobatch(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 16, Width: 1024, Heads: 16, Vocab: 51200, Sequence: 512, Recompute: "none"}
	at := func(micro int) plan.Step {
		p, err := plan.New(big(m, 1, 4, 1, 32/micro, 32))
		if err != nil {
			t.Fatal(err)
		}
		return p.Step
	}
	a, b := at(1), at(8)
	if !(b.Bubble > a.Bubble && b.Compute < a.Compute) {
		t.Errorf("microbatch 1: bubble %v, compute %v; 8: %v, %v", a.Bubble, a.Compute, b.Bubble, b.Compute)
	}
}

// TestClusterProblems: everything wrong with a cluster at once.
func TestClusterProblems(t *testing.T) {
	_, err := plan.ClusterOf(map[string]any{"gpu": "a101", "network_bandwidth_gbs": int64(0), "nettwork": 3.0, "precision": "int4", "calibrated": "/does/not/exist"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"cluster.gpu", "a100-80", "cluster.network_bandwidth_gbs = 0", "cluster.nettwork = 3: no such key", "cluster.precision = int4", "cluster.calibrated"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// TestLinks: more than two levels of links, in the section's own tables; all that is wrong with them at once.
func TestLinks(t *testing.T) {
	link := func(gpus, bandwidth, latency any) map[string]any {
		m := map[string]any{"bandwidth_gbs": bandwidth, "latency_us": latency}
		if gpus != nil {
			m["gpus"] = gpus
		}
		return m
	}
	c, err := plan.ClusterOf(map[string]any{"gpu": "h100-sxm", "program": "megatron-core", "precision": "fp8", "gather_ahead": true,
		"link": []any{link(int64(8), 450.0, 3.4), link(int64(32), 50.0, 8.0), link(nil, 25.0, 14.0)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Links) != 3 || c.Links[1].Span != 32 || !c.Float8 || !c.GatherAhead || c.Efficiency != 0.66 {
		t.Errorf("%+v", c)
	}
	_, err = plan.ClusterOf(map[string]any{"gpu": "a100-80", "program": "mega", "precision": "fp8", "regather": int64(1),
		"link": []any{link(nil, 0.0, 3.4), link(int64(12), 50.0, 8.0), link(int64(8), 50.0, 8.0)}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"cluster.program = mega", "composer", "cluster.precision = fp8", "cluster.regather = 1", "link[0].bandwidth_gbs = 0", "link[0].gpus", "link[2].gpus = 8"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// TestContention: what data ranks send beside backward finds less room where tensor ranks and messages between pipeline ranks use the same link.
func TestContention(t *testing.T) {
	m := nn.Config{Family: nn.GPT2, Layers: 16, Width: 4096, Heads: 32, Vocab: 51200, Sequence: 2048, Recompute: "none"}
	exposed := func(spans ...int) float64 {
		c := big(m, 2, 2, 4, 4, 16)
		c.Zero.Stage, c.Zero.Overlap, c.Mesh.TPOverlap = 3, true, true
		var links []any
		for _, n := range spans { // all as fast as one another: only what shares a link differs
			links = append(links, map[string]any{"gpus": int64(n), "bandwidth_gbs": 12.0, "latency_us": 1.0})
		}
		c.Cluster["link"] = links
		p, err := plan.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p.Step.Data
	}
	if apart, shared := exposed(2, 16), exposed(16); shared < 1.05*apart {
		t.Errorf("exposed on the data axes: %s where tensor ranks have a link of their own, %s on one link", plan.Seconds(apart), plan.Seconds(shared))
	}
}
