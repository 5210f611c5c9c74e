package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"triax/comm"
	"triax/configs"
	"triax/data"
	"triax/nn"
	"triax/plan"
	"triax/schedule"
	"triax/train"
)

// TestLedgerIsPrice: calls and bytes of real runs are those on paper, to the byte, for mixed layouts of all axes but the expert one, whose bytes
// depend on the tokens.
func TestLedgerIsPrice(t *testing.T) {
	n := 90
	if testing.Short() {
		n = 20
	}
	rng := rand.New(rand.NewPCG(11, 3))
	tried := 0
	for tried < n {
		c := random(rng)
		if configs.Resolved(c).Validate() != nil {
			continue
		}
		tried++
		want, err := plan.Traffic(c)
		if err != nil {
			t.Fatalf("%s: %v", about(c), err)
		}
		corpus, err := data.Of(data.Bytes{}, 0, string(make([]byte, 3000)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := train.Run(context.Background(), c, train.Options{Corpus: corpus})
		if err != nil {
			t.Fatalf("%s: %v", about(c), err)
		}
		same(t, c, res.Comm, want)
	}
	t.Logf("%d layouts", tried)
}

func same(t *testing.T, c *configs.Config, got, want []comm.Entry) {
	t.Helper()
	paper := map[string]comm.Entry{}
	for _, e := range want {
		paper[e.Axis+" "+string(e.Kind)] = e
	}
	for _, e := range got {
		key := e.Axis + " " + string(e.Kind)
		if w := paper[key]; w.Calls != e.Calls || w.Bytes != e.Bytes {
			t.Errorf("%s\n%s: %d calls %d bytes run, %d calls %d bytes on paper", about(c), key, e.Calls, e.Bytes, w.Calls, w.Bytes)
		}
		delete(paper, key)
	}
	for key, w := range paper {
		t.Errorf("%s\n%s: nothing run, %d calls %d bytes on paper", about(c), key, w.Calls, w.Bytes)
	}
}

func about(c *configs.Config) string {
	return fmt.Sprintf("%s %+v %+v %+v layers %d tied %v kv %d recompute %s %d lora %d %v", c.Train.Precision, c.Mesh, c.Pipeline, c.Zero, c.Model.Layers, c.Model.Tied, c.Model.KVHeads,
		c.Model.Recompute, c.Model.RecomputeLayers, c.Model.LoRARank, c.Model.LoRATargets)
}

func random(rng *rand.Rand) *configs.Config {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	yes := func() bool { return rng.IntN(2) == 0 }
	c := configs.Default()
	c.Model = nn.Config{
		Family: []nn.Family{nn.GPT2, nn.Llama}[rng.IntN(2)], Layers: pick(2, 3, 5, 8), Width: 24, Heads: 12, KVHeads: pick(12, 4, 2, 1), Hidden: 24,
		Sequence: 8, Tied: yes(), Recompute: nn.RecomputeModes[rng.IntN(3)],
	}
	if c.Model.Family == nn.Llama {
		c.Model.QKVBias, c.Model.QKNorm, c.Model.HeadDim = yes(), yes(), pick(0, 4)
	}
	if c.Model.Recompute != nn.RecomputeNone {
		c.Model.RecomputeLayers = rng.IntN(3)
	}
	m := &c.Mesh
	m.PP, m.DP, m.TP, m.CP, m.Replicate = pick(1, 1, 2, 3), pick(1, 2, 3), pick(1, 2, 4), pick(1, 1, 2), pick(1, 1, 2)
	m.SequenceParallel = m.TP > 1 && yes()
	c.Pipeline.Schedule = schedule.Names()[rng.IntN(len(schedule.Names()))]
	c.Pipeline.Microbatches = pick(1, 2, 3, 4, 6)
	c.Pipeline.Balance = []string{"even", "cost"}[rng.IntN(2)]
	c.Zero.Stage, c.Zero.BucketElements = rng.IntN(4), pick(1, 2000, 1<<20)
	c.Zero.KeepAfterForward, c.Zero.Overlap = yes(), yes()
	c.Train.Steps, c.Train.Batch, c.Train.EvalBatches = 2, 36, 0
	if pick(0, 0, 0, 1) == 1 {
		c.Model.LoRARank, c.Model.LoRATargets = pick(1, 4), nn.LoRATargets[:pick(1, 4)]
	}
	c.Train.Precision = []string{configs.PrecisionFull, configs.PrecisionBF16}[rng.IntN(2)]
	return c
}

// TestExpertsArePrice: on paper tokens spread evenly over experts; the calls of a run are the same all the same, and so are the bytes
// of all but the exchange of tokens, which is as long as the fullest expert's part.
func TestExpertsArePrice(t *testing.T) {
	for _, m := range []configs.MeshConfig{
		{TP: 1, PP: 1, DP: 1, EP: 4}, {TP: 2, PP: 1, DP: 1, EP: 2, SequenceParallel: true}, {TP: 1, PP: 2, DP: 2, EP: 2}, {TP: 2, PP: 2, DP: 1, EP: 1, CP: 2},
	} {
		for stage := range 4 {
			for _, capacity := range []float64{0, 1.25} {
				c := configs.Default()
				c.Model = nn.Config{Family: nn.Llama, Layers: 4, Width: 24, Heads: 4, Hidden: 24, Sequence: 8, Experts: 4, TopK: 2, AuxLoss: 0.01, CapacityFactor: capacity, Recompute: "none"}
				m.CP, m.Replicate = max(1, m.CP), 1
				c.Mesh, c.Zero.Stage = m, stage
				c.Pipeline.Schedule, c.Pipeline.Microbatches = "1f1b", 2
				c.Train.Steps, c.Train.Batch, c.Train.EvalBatches = 2, 16, 0
				want, err := plan.Traffic(c)
				if err != nil {
					t.Fatalf("%s: %v", about(c), err)
				}
				corpus, err := data.Of(data.Bytes{}, 0, string(make([]byte, 3000)))
				if err != nil {
					t.Fatal(err)
				}
				res, err := train.Run(context.Background(), c, train.Options{Corpus: corpus})
				if err != nil {
					t.Fatalf("%s: %v", about(c), err)
				}
				same(t, c, evened(res.Comm), evened(want))
			}
		}
	}
}

// evened leaves out the bytes that tokens decide.
func evened(list []comm.Entry) (out []comm.Entry) {
	for _, e := range list {
		if e.Axis == "ep" && e.Kind == comm.KindAllToAll {
			e.Bytes = 0
		}
		out = append(out, e)
	}
	return out
}
