package train

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"triax/configs"
	"triax/data"
	"triax/nn"
	"triax/optim"
	"triax/schedule"
)

// alphabet is a tokeniser with a vocabulary of any size, for odd cuts.
type alphabet int

func (a alphabet) Name() string { return fmt.Sprintf("alphabet of %d", int(a)) }
func (a alphabet) Vocab() int   { return int(a) }
func (a alphabet) End() int32   { return int32(a) - 1 }
func (a alphabet) Encode(ids []int32, text []byte) ([]int32, error) {
	for i, b := range text {
		ids = append(ids, int32((int(b)*7+i*i)%(int(a)-1)))
	}
	return ids, nil
}
func (a alphabet) Decode(ids []int32) string { return fmt.Sprint(ids) }

// letters is a corpus of so many tokens.
func letters(t testing.TB, vocab, tokens int) *data.Corpus {
	t.Helper()
	text := make([]byte, tokens-1) // and the end of the document
	x := uint32(1)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = byte(x >> 24)
	}
	c, err := data.Of(alphabet(vocab), 0, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gridBatch has many divisors: what data ranks and microbatches share out.
const gridBatch, gridSequence = 36, 8

// base is the model and training of the grid. An epoch is two and a half batches, so that the third step has masked
// samples, unequal over ranks and microbatches, and the fourth begins a new epoch.
func base() *configs.Config {
	c := configs.Default()
	c.Model = nn.Config{Family: nn.GPT2, Layers: 4, Width: 24, Heads: 12, Hidden: 24, Vocab: 17, Sequence: gridSequence, InitStd: 0.2, Recompute: "none"}
	c.Train.Steps, c.Train.Batch, c.Train.EvalBatches, c.Train.Device = 4, gridBatch, 0, "float64"
	c.Optim = optim.Default()
	c.Optim.Eps = 1e-5 // the key bias has no gradient under softmax, and AdamW divides its rounding by eps
	c.Optim.LR, c.Optim.Clip, c.Optim.Curve, c.Optim.Warmup, c.Optim.Momentum = 1e-2, 0.5, "cosine", 1, 0.9
	c.Zero.BucketElements = 1000
	return c
}

const gridTokens = gridBatch*gridSequence*5/2 + 3

// uncutCache holds the reference of every model and training that the grid meets, each computed once.
type uncutCache struct {
	mu   sync.Mutex
	runs map[string]func() *history
}

func (c *uncutCache) get(t *testing.T, cfg *configs.Config, corpus *data.Corpus) *history {
	m := cfg.Model
	m.Recompute, m.RecomputeLayers = nn.RecomputeNone, 0
	key := fmt.Sprint(m, cfg.Optim, cfg.Train.Steps, cfg.Train.Batch, cfg.Train.Seed, cfg.Data.LastBatch)
	c.mu.Lock()
	if c.runs == nil {
		c.runs = map[string]func() *history{}
	}
	run := c.runs[key]
	if run == nil {
		plain := *cfg
		plain.Model = m
		run = sync.OnceValue(func() *history { return uncut(t, &plain, corpus) })
		c.runs[key] = run
	}
	c.mu.Unlock()
	return run()
}

// gridCase is one configuration of the grid.
type gridCase struct {
	name string
	cfg  *configs.Config
}

// grid lists configurations: every mesh of up to most ranks an axis with every ZeRO stage, and with them all other choices in
// turn, at strides that bring each pair together.
func grid(most, ranks int) (out []gridCase) {
	for pp := 1; pp <= most; pp++ {
		for dp := 1; dp <= most; dp++ {
			for tp := 1; tp <= most; tp++ {
				for cp := 1; cp <= 2; cp++ {
					if pp*dp*tp*cp > ranks || cp > 1 && (pp+dp+tp)%2 == 0 {
						continue
					}
					for stage := range 4 {
						c := base()
						c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Mesh.CP, c.Zero.Stage = pp, dp, tp, cp, stage
						i := len(out)
						arrange(c, i)
						out = append(out, gridCase{fmt.Sprintf("%03d %s", i, label(c)), c})
					}
				}
			}
		}
	}
	return out
}

// arrange sets everything but mesh and ZeRO stage of configuration i.
func arrange(c *configs.Config, i int) {
	pick := func(n, stride int) int { return i / stride % n }
	pp, dp, tp := c.Mesh.PP, c.Mesh.DP, c.Mesh.TP
	names := schedule.Names()
	c.Pipeline.Schedule = names[(i*7+i/4)%len(names)]
	if pp == 1 {
		c.Pipeline.Schedule = names[(i/4)%len(names)]
	}
	c.Pipeline.Microbatches = microChoices(c.Pipeline.Schedule, pp, dp, i)
	stages := pp * schedule.ChunksOf(c.Pipeline.Schedule, 0)
	c.Model.Layers = max(2, stages) + pick(2, 3)
	if (i+i/4)%4 == 3 {
		c.Pipeline.Balance = "cost"
	}
	c.Model.Tied = (i+i/4)%2 == 0 // the stage goes with i mod 4
	c.Model.Vocab = []int{17, 127, 509}[pick(3, 2)]
	if pick(2, 2) == 1 {
		c.Model.Family = nn.Llama
		for _, kv := range [][]int{{1, 2, 12}, {2, 12, 1}, {12, 6, 1}}[pick(3, 1)] {
			if kv%tp == 0 || tp%kv == 0 {
				c.Model.KVHeads = kv
				break
			}
		}
		c.Model.QKVBias, c.Model.QKNorm = pick(3, 4) == 1, pick(3, 4) == 2
		if c.Model.QKNorm {
			c.Model.HeadDim = 4 // not width / heads
		}
		if s := nn.RopeScalings[pick(4, 6)]; s != nn.RopeNone {
			c.Model.RopeScaling, c.Model.RopeFactor, c.Model.RopeBase = s, 4, 50
			if s != nn.RopeLinear {
				c.Model.RopeOriginal = 16
			}
		}
	}
	if pick(3, 3) == 1 {
		c.Optim.Rule = "sgd"
	}
	if pick(3, 2) == 2 {
		c.Optim.Clip = 0
	}
	if pick(2, 5) == 1 {
		c.Model.Dropout = 0.2
	}
	c.Model.Recompute = nn.RecomputeModes[pick(3, 7)]
	if c.Model.Recompute != nn.RecomputeNone {
		c.Model.RecomputeLayers = pick(3, 11)
	}
	if rows := gridBatch / (dp * c.Pipeline.Microbatches) * gridSequence / c.Mesh.CP; tp > 1 && rows%tp == 0 {
		c.Mesh.SequenceParallel = pick(2, 3) == 1
	}
	if (i+i/4)%4 == 2 {
		c.Model.Experts, c.Model.TopK, c.Model.AuxLoss = 4, 1+pick(2, 4), 0.1*float64(pick(2, 8))
		if !c.Mesh.SequenceParallel && c.Mesh.CP == 1 && pick(2, 12) == 1 {
			c.Model.CapacityFactor = 1
		}
	}
	if dp%2 == 0 {
		switch {
		case c.Model.Experts > 0:
			c.Mesh.DP, c.Mesh.EP = dp/2, 2
		case pick(2, 2) == 1:
			c.Mesh.DP, c.Mesh.Replicate = dp/2, 2
		}
		if dp == 4 && c.Model.Experts > 0 && pick(2, 3) == 1 {
			c.Mesh.DP, c.Mesh.Replicate = 1, 2
		}
	}
	c.Zero.KeepAfterForward = pick(2, 6) == 1
	c.Zero.Overlap, c.Zero.Prefetch = pick(2, 3) == 0, pick(3, 5)
	c.Zero.BucketElements = []int{1, 1000, 100000}[pick(3, 4)]
	if pick(2, 9) == 1 {
		c.Mesh.Axes = []string{"tp", "dp", "cp", "dp_replicate", "pp"}
	}
	c.Train.Verify, c.Mesh.TPOverlap = pick(5, 1) == 4, pick(2, 7) == 0
	c.Data.LastBatch = data.LastBatches[pick(3, 13)]
}

// microChoices turns through numbers of microbatches fewer than, equal to and more than the stages.
func microChoices(name string, pp, dp, i int) int {
	var fit []int
	for _, m := range []int{1, 2, 3, 4, 6, 9, 12} {
		if gridBatch/dp%m != 0 {
			continue
		}
		if _, err := schedule.New(name, pp, m, 0); err == nil {
			fit = append(fit, m)
		}
	}
	return fit[i%len(fit)]
}

func label(c *configs.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pp%d dp%d tp%d zero%d %s m%d %s L%d V%d %s", c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Pipeline.Schedule,
		c.Pipeline.Microbatches, c.Model.Family, c.Model.Layers, c.Model.Vocab, c.Optim.Rule)
	add := func(yes bool, text string) {
		if yes {
			b.WriteString(" " + text)
		}
	}
	add(c.Mesh.Replicate > 1, fmt.Sprintf("replicate%d", c.Mesh.Replicate))
	add(c.Mesh.CP > 1, fmt.Sprintf("cp%d", c.Mesh.CP))
	add(c.Mesh.EP > 1, fmt.Sprintf("ep%d", c.Mesh.EP))
	add(c.Model.Experts > 0, fmt.Sprintf("experts%d top%d aux%g capacity%g", c.Model.Experts, c.Model.TopK, c.Model.AuxLoss, c.Model.CapacityFactor))
	add(c.Zero.Overlap, "overlap")
	add(c.Model.Tied, "tied")
	add(c.Model.KVHeads > 0, fmt.Sprintf("kv%d", c.Model.KVHeads))
	add(c.Model.QKVBias, "qkvbias")
	add(c.Model.QKNorm, "qknorm")
	add(c.Model.RopeScaling != "", "rope "+c.Model.RopeScaling)
	add(c.Optim.Clip > 0, "clip")
	add(c.Model.Dropout > 0, "dropout")
	add(c.Model.Recompute != "none", c.Model.Recompute)
	add(c.Mesh.SequenceParallel, "sequence")
	return b.String()
}

// tally is how many configurations have a property, and their largest difference.
type tally struct {
	n     int
	worst float64
}

// dimensions are the properties by which the grid's outcome is summed up.
func dimensions(c *configs.Config) []string {
	m := c.Mesh
	out := []string{
		"schedule " + c.Pipeline.Schedule, fmt.Sprintf("zero %d", c.Zero.Stage), "family " + string(c.Model.Family), "rule " + c.Optim.Rule,
		"recompute " + c.Model.Recompute, fmt.Sprintf("vocabulary %d", c.Model.Vocab), fmt.Sprintf("tied %v", c.Model.Tied),
		fmt.Sprintf("dropout %v", c.Model.Dropout > 0), fmt.Sprintf("sequence parallel %v", m.SequenceParallel),
		fmt.Sprintf("overlap %v", c.Zero.Overlap), fmt.Sprintf("clipping %v", c.Optim.Clip > 0), fmt.Sprintf("experts %v", c.Model.Experts > 0),
		fmt.Sprintf("layers by %s", c.Pipeline.Balance), fmt.Sprintf("qkv bias %v", c.Model.QKVBias), fmt.Sprintf("qk norm %v", c.Model.QKNorm),
		"rope " + c.Model.Resolved().RopeScaling,
	}
	for _, a := range []struct {
		name string
		n    int
	}{{"pp", m.PP}, {"dp", m.DP}, {"tp", m.TP}, {"cp", m.CP}, {"ep", m.EP}, {"dp_replicate", m.Replicate}} {
		out = append(out, fmt.Sprintf("%s %d", a.name, a.n))
	}
	return out
}

// equalTo is the largest relative difference that regrouped float64 sums may make.
const equalTo = 1e-10

// TestEqualToUncut is the proof: every way to cut the model gives the uncut model's losses, gradients, norms, weights and
// optimizer states. With -short every fifth.
func TestEqualToUncut(t *testing.T) {
	var cache uncutCache
	var worst difference
	by := map[string]tally{}
	cases := grid(4, 24)
	for i, c := range cases {
		if testing.Short() && i%5 != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			corpus := letters(t, c.cfg.Model.Vocab, gridTokens)
			want := cache.get(t, c.cfg, corpus)
			got, _ := cutRun(t, c.cfg, corpus)
			d := compare(got, want)
			if d.relative > equalTo {
				t.Errorf("relative difference %.3g at %s", d.relative, d.where)
			}
			worst.see(d.relative, "%s: %s", c.name, d.where)
			for _, dimension := range dimensions(c.cfg) {
				t := by[dimension]
				by[dimension] = tally{t.n + 1, max(t.worst, d.relative)}
			}
		})
	}
	for _, dimension := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%-24s %3d configurations, worst relative difference %.1g", dimension, by[dimension].n, by[dimension].worst)
	}
	t.Logf("%d configurations, worst relative difference %.2g: %s", len(cases), worst.relative, worst.where)
}
