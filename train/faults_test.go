package train

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"triax/comm"
	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/mesh"
	"triax/nn"
	"triax/tensor"
)

// Faults that users of other systems have met, each a configuration whose right answer is the uncut model's. The number is that of the
// case; what went wrong there stands beside it.

// faultCase is a change to the base configuration.
type faultCase struct {
	name   string
	change func(c *configs.Config)
}

func mesh3(pp, dp, tp int) func(*configs.Config) {
	return func(c *configs.Config) { c.Mesh.PP, c.Mesh.DP, c.Mesh.TP = pp, dp, tp }
}

func with(changes ...func(*configs.Config)) func(*configs.Config) {
	return func(c *configs.Config) {
		for _, f := range changes {
			f(c)
		}
	}
}

func zeroStage(n int) func(*configs.Config) { return func(c *configs.Config) { c.Zero.Stage = n } }
func tied(c *configs.Config)                { c.Model.Tied = true }
func plainSGD(c *configs.Config)            { c.Optim.Rule = "sgd" }
func overlapped(c *configs.Config)          { c.Zero.Overlap = true }

func replicated(n int) func(*configs.Config) { return func(c *configs.Config) { c.Mesh.Replicate = n } }

// experts makes a mixture of four experts over ep ranks, with the load-balancing loss.
func experts(ep, k int) func(*configs.Config) {
	return func(c *configs.Config) {
		c.Mesh.EP, c.Model.Experts, c.Model.TopK, c.Model.AuxLoss = ep, 4, k, 0.2
	}
}

func micros(n int) func(*configs.Config) {
	return func(c *configs.Config) { c.Pipeline.Microbatches = n }
}
func named(s string) func(*configs.Config) {
	return func(c *configs.Config) { c.Pipeline.Schedule = s }
}

var faultCases = []faultCase{
	{"B1 tied, pipeline, ZeRO-1: shards of both copies added before the data-axis sum", with(mesh3(2, 2, 1), tied, zeroStage(1))},
	{"B3 tied, ZeRO-3: stages of unequal layout", with(mesh3(2, 3, 1), tied, zeroStage(3), func(c *configs.Config) { c.Pipeline.Layers = []int{1, 3} })},
	{"B4 tied table twice in the norm", with(mesh3(2, 1, 1), tied, plainSGD)},
	{"B9 shared weight and split backward: counted twice", with(mesh3(1, 1, 1), tied, named("zb-h1"), micros(3))},
	{"B9 shared weight and split backward on a V", with(mesh3(2, 1, 1), tied, named("zb-v"), micros(4))},
	{"B10 replicated parameters in the norm once for every tensor rank", with(mesh3(1, 1, 4), plainSGD)},
	{"B11 late weight gradient of the table against an early reduction", with(mesh3(2, 2, 1), tied, named("zb-h2"), micros(6), overlapped)},
	{"B12 divided by the number of microbatches on every stage", with(mesh3(2, 1, 1), micros(4), plainSGD)},
	{"B13 norm depends on how the batch is cut: 2 x 18", with(mesh3(2, 1, 1), micros(2), plainSGD)},
	{"B13 norm depends on how the batch is cut: 18 x 2", with(mesh3(2, 1, 1), micros(18), plainSGD)},
	{"B15 pipeline gradient larger by the number of valid tokens", with(mesh3(3, 1, 1), micros(3), plainSGD)},
	{"B16 accumulation without division under every schedule", with(mesh3(2, 1, 1), micros(6), named("gpipe"), plainSGD)},
	{"B19 context ranks: one normalises by its own tokens", with(func(c *configs.Config) { c.Mesh.CP = 2 }, plainSGD)},
	{"B19 context ranks: four", with(func(c *configs.Config) { c.Mesh.CP = 4 }, plainSGD)},
	{"B20 a second loss under unequal numbers of tokens", with(mesh3(1, 3, 1), experts(1, 1), micros(4), plainSGD)},
	{"B22 gradients not summed over the sequence axis", with(func(c *configs.Config) { c.Mesh.CP, c.Zero.Stage = 2, 2 }, plainSGD)},
	{"B25 experts' gradients over the wrong group", with(mesh3(1, 2, 1), experts(2, 2), plainSGD)},
	{"B25 experts' gradients over the wrong group, sharded", with(mesh3(2, 2, 2), experts(2, 2), zeroStage(3), plainSGD)},
	{"B27 last microbatch added after the reduction", with(mesh3(1, 2, 1), zeroStage(1), micros(6), func(c *configs.Config) { c.Zero.Overlap = true })},
	{"B34 a stale second copy under hybrid sharding", with(mesh3(1, 2, 1), replicated(2), zeroStage(3), overlapped, func(c *configs.Config) { c.Zero.KeepAfterForward = true })},
	{"B35 replicas without shards: gradients never summed", with(mesh3(1, 1, 1), replicated(3), zeroStage(3), plainSGD)},
	{"B43 the inner sum used before the outer one is done", with(mesh3(2, 2, 1), replicated(2), zeroStage(2), overlapped)},
	{"B46 flat groups of cut and whole parameters: only tensor rank 0 counted", with(mesh3(1, 2, 4), zeroStage(1), plainSGD)},
	{"B47 norm of one stage only", with(mesh3(4, 1, 1), plainSGD)},
	{"B48 a rank that owns nothing of a bucket", with(mesh3(2, 4, 1), zeroStage(2), func(c *configs.Config) { c.Zero.BucketElements = 1 })},
	{"B51 biases cut by heads counted as copies", with(mesh3(1, 1, 4), plainSGD, func(c *configs.Config) { c.Model.Family = nn.GPT2; c.Optim.Clip = 0.01 })},
	{"B53 sequence parallel: gradient of the last norm not summed", with(mesh3(1, 1, 4), func(c *configs.Config) { c.Mesh.SequenceParallel = true }, plainSGD)},
	{"B56 cross-entropy with local labels", with(mesh3(1, 1, 3), func(c *configs.Config) { c.Model.Vocab = 127 })},
	{"B57 vocabulary that the tensor ranks do not divide", with(mesh3(1, 1, 4), func(c *configs.Config) { c.Model.Vocab = 509 }, plainSGD)},
	{"B57 vocabulary with a rank of padding only", with(mesh3(1, 1, 4), func(c *configs.Config) { c.Model.Vocab = 17; c.Model.Heads = 4 })},
	{"B59 column-parallel input without a sum of its gradient", with(mesh3(1, 1, 2), plainSGD, func(c *configs.Config) { c.Model.Family = nn.Llama })},
	{"B63 recompute draws other dropout masks", func(c *configs.Config) { c.Model.Dropout, c.Model.Recompute = 0.3, nn.RecomputeFull }},
	{"B64 stages start with the same weights", mesh3(4, 1, 1)},
	{"B70 groups opened as they are needed", with(mesh3(4, 2, 1), named("interleaved"), micros(6), zeroStage(1), func(c *configs.Config) { c.Model.Layers = 8 })},
	{"B71 fewer microbatches than stages", with(mesh3(4, 1, 1), micros(1))},
	{"B71 fewer microbatches than stages, interleaved", with(mesh3(3, 1, 1), micros(2), named("interleaved"), func(c *configs.Config) { c.Model.Layers = 6 })},
	{"B72 layers that the stages do not divide", with(mesh3(4, 1, 1), micros(4), func(c *configs.Config) { c.Model.Layers = 6 })},
	{"B78 reductions in an order of chance", with(mesh3(2, 2, 2), zeroStage(2), named("v-half"), micros(3))},
}

// TestFaultCases compares each with the uncut model.
func TestFaultCases(t *testing.T) {
	var cache uncutCache
	for _, f := range faultCases {
		t.Run(f.name, func(t *testing.T) {
			c := base()
			f.change(c)
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			corpus := letters(t, c.Model.Vocab, gridTokens)
			got, _ := cutRun(t, c, corpus)
			if d := compare(got, cache.get(t, c, corpus)); d.relative > equalTo {
				t.Errorf("relative difference %.3g at %s", d.relative, d.where)
			}
		})
	}
}

// TestB31ShardBorders: parameters of any size against any number of shards, also where a shard is all padding; no stage is quietly
// lowered for it (B38).
func TestB31ShardBorders(t *testing.T) {
	var cache uncutCache
	for stage := 1; stage <= 3; stage++ {
		for _, width := range []int{2, 3, 4, 5} { // norms and biases of g-2 to g+1 elements, and one of 1
			for _, bucket := range []int{1, 7, 1 << 20} {
				c := base()
				c.Mesh.DP, c.Zero.Stage, c.Zero.BucketElements = 4, stage, bucket
				c.Model.Layers, c.Model.Width, c.Model.Heads, c.Model.Hidden, c.Model.Sequence = 1, width, 1, 1, 4
				corpus := letters(t, 17, gridTokens)
				got, _ := cutRun(t, c, corpus)
				if d := compare(got, cache.get(t, c, corpus)); d.relative > equalTo {
					t.Errorf("ZeRO-%d, width %d, bucket %d: relative difference %.3g at %s", stage, width, bucket, d.relative, d.where)
				}
			}
		}
	}
}

// TestB17UnequalTokens: an epoch whose last batch leaves some ranks with hardly a token, one with none.
func TestB17UnequalTokens(t *testing.T) {
	var cache uncutCache
	for _, extra := range []int{2, gridSequence + 3, 11 * gridSequence} {
		for _, dp := range []int{1, 2, 3} {
			c := base()
			plainSGD(c)
			c.Mesh.DP, c.Pipeline.Microbatches, c.Train.Steps = dp, 6, 2
			c.Train.Seed = uint64(extra)
			corpus := letters(t, 17, gridBatch*gridSequence+extra)
			got, _ := cutRun(t, c, corpus)
			if d := compare(got, cache.get(t, c, corpus)); d.relative > equalTo {
				t.Errorf("dp %d, %d tokens beyond a batch: relative difference %.3g at %s", dp, extra, d.relative, d.where)
			}
		}
	}
}

// TestB23EvaluationLeavesNoTrace: evaluations between steps change no bit of the training.
func TestB23EvaluationLeavesNoTrace(t *testing.T) {
	run := func(every, batches int) *history {
		c := base()
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Model.Tied = 2, 2, 2, 3, true
		c.Pipeline.Microbatches, c.Model.Dropout = 3, 0.2
		c.Data.HeldOut = 0.3
		c.Train.EvalEvery, c.Train.EvalBatches = every, batches
		text := strings.Repeat("the quick brown fox jumps over the lazy dog; ", 60)
		corpus, err := data.Of(alphabet(17), 0.3, text)
		if err != nil {
			t.Fatal(err)
		}
		h, _ := cutRun(t, c, corpus)
		return h
	}
	if d := compare(run(1, 3), run(0, 0)); d.relative != 0 {
		t.Errorf("relative difference %.3g at %s", d.relative, d.where)
	}
}

// TestB26HeldOutLoss: the held-out loss counts every sample once on every mesh.
func TestB26HeldOutLoss(t *testing.T) {
	corpus, err := data.Of(alphabet(17), 0.3, strings.Repeat("pack my box with five dozen liquor jugs. ", 80))
	if err != nil {
		t.Fatal(err)
	}
	var want float64
	for i, m := range [][5]int{{1, 1, 1, 1, 1}, {2, 2, 1, 2, 1}, {1, 3, 2, 1, 1}, {2, 1, 2, 1, 2}} {
		c := base()
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Mesh.Replicate, c.Mesh.CP = m[0], m[1], m[2], m[3], m[4]
		c.Data.HeldOut, c.Train.EvalBatches = 0.3, 5
		_, res := cutRun(t, c, corpus)
		got := res.Eval[len(res.Eval)-1].Loss
		if i == 0 {
			want = got
		}
		if math.Abs(got-want) > equalTo*want {
			t.Errorf("%s: held-out loss %v, want %v", res.Mesh, got, want)
		}
	}
}

// TestB55LongRun: two hundred steps later a cut run still has the uncut model's loss.
func TestB55LongRun(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	c := base()
	c.Train.Steps, c.Optim.LR, c.Optim.Warmup = 200, 3e-3, 10
	corpus := letters(t, 17, gridTokens)
	want := uncut(t, c, corpus)
	c.Mesh.TP, c.Mesh.PP, c.Mesh.DP, c.Zero.Stage = 4, 2, 2, 2
	got, _ := cutRun(t, c, corpus)
	last := len(want.loss) - 1
	if diff := math.Abs(got.loss[last]-want.loss[last]) / want.loss[last]; diff > 1e-8 || want.loss[last] > 0.8*want.loss[0] {
		t.Errorf("loss of step %d: %v, want %v (relative %.2g); step 1 had %v", last+1, got.loss[last], want.loss[last], diff, want.loss[0])
	}
}

// TestB2TiedCopiesStayEqual: both copies of a tied table are equal to the last bit after every step.
func TestB2TiedCopiesStayEqual(t *testing.T) {
	for stage := range 4 {
		c := base()
		c.Mesh.PP, c.Mesh.DP, c.Zero.Stage, c.Model.Tied, c.Train.Steps = 2, 2, stage, true, 8
		c.Train.Verify = true
		cutRun(t, c, letters(t, 17, gridTokens)) // the observer compares copies at the end, Verify after each step
	}
}

// TestB80MemoryIsFlat: nothing grows after the third step, under any schedule.
func TestB80MemoryIsFlat(t *testing.T) {
	for _, name := range []string{"gpipe", "1f1b", "interleaved", "zb-h2", "zb-v", "dualpipe-v"} {
		c := base()
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Zero.Overlap = 2, 2, 2, 3, true
		c.Pipeline.Schedule, c.Pipeline.Microbatches, c.Train.Steps = name, 6, 12
		now := make([]int64, c.Mesh.World())
		fresh := make([]int64, c.Mesh.World())
		_, err := Run(context.Background(), c, Options{
			Corpus: letters(t, 17, gridTokens),
			Open:   func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) },
			OnWorker: func(step int, w *Worker) error {
				h, r := w.dev.Heap(), w.wire.Rank()
				if step == 3 {
					now[r], fresh[r] = h.Total().Now, h.Fresh()
				}
				if step > 3 && h.Total().Now != now[r] {
					return fmt.Errorf("%d bytes in use after step %d, %d after step 3", h.Total().Now, step, now[r])
				}
				// Memory goes round between ranks with messages, so fresh memory settles a little later.
				if step == 12 && h.Fresh() > 2*fresh[r] {
					return fmt.Errorf("%d bytes asked for by step 12, %d by step 3", h.Fresh(), fresh[r])
				}
				return nil
			},
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reading notes what a rank loads: uploads come in fives a microbatch, the fourth the tokens' numbers in the global batch.
type reading struct {
	tensor.Device
	calls int
	index map[int32]bool
}

func (r *reading) UploadI32(dst *tensor.Tensor, src []int32) {
	if r.calls%5 == 3 {
		for _, i := range src {
			r.index[i] = true
		}
	}
	r.calls++
	r.Device.UploadI32(dst, src)
}

// TestB93PeersReadTheSameSamples: tensor and pipeline ranks load the same tokens; ranks that differ along the data or context axes load
// different ones, and all together the whole batch, each token once.
func TestB93PeersReadTheSameSamples(t *testing.T) {
	c := base()
	c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Mesh.CP = 2, 3, 2, 2
	c.Pipeline.Microbatches, c.Train.Steps, c.Optim.Warmup = 3, 1, 0
	m, err := c.Mesh.Grid()
	if err != nil {
		t.Fatal(err)
	}
	devices := make([]*reading, m.Size())
	_, err = Run(context.Background(), c, Options{Corpus: letters(t, 17, gridTokens), Open: func(rank int) tensor.Device {
		devices[rank] = &reading{Device: cpu.New(cpu.Options{Float: tensor.F64}), index: map[int32]bool{}}
		return devices[rank]
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, peers := range m.Groups(mesh.TP, mesh.PP) {
		for _, r := range peers[1:] {
			if !maps.Equal(devices[r].index, devices[peers[0]].index) {
				t.Errorf("%s and %s load different tokens", place(m, r), place(m, peers[0]))
			}
		}
	}
	for _, replicas := range m.Groups(mesh.DP, mesh.CP) {
		seen := map[int32]int{}
		for _, r := range replicas {
			for i := range devices[r].index {
				seen[i]++
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("token %d is loaded by %d of the ranks %v", i, n, replicas)
			}
		}
		if len(seen) != gridBatch*gridSequence {
			t.Errorf("ranks %v load %d of %d tokens", replicas, len(seen), gridBatch*gridSequence)
		}
	}
}

// TestB52SkippedStep: a gradient that is not finite on one rank skips the step on all of them, says so, and leaves weights and moments
// as they were (B52).
func TestB52SkippedStep(t *testing.T) {
	for stage := range 4 {
		c := base()
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage = 2, 2, 2, stage
		o := newObserver(c.Train.Steps)
		res, err := Run(context.Background(), c, Options{
			Corpus: letters(t, 17, gridTokens),
			Open:   func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) },
			OnWorker: func(step int, w *Worker) error {
				if err := o.attach(step, w); err != nil || step > 0 {
					return err
				}
				inner := w.opt.Observe
				w.opt.Observe = func(p *nn.Param, lo int, grad *tensor.Tensor) {
					inner(p, lo, grad)
					if w.step == 2 && w.wire.Rank() == 5 {
						w.dev.Upload(grad.Flat(0, 1), []float64{math.Inf(1)})
					}
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(res.Skipped) != "[2]" {
			t.Errorf("ZeRO-%d: skipped %v, want [2]", stage, res.Skipped)
		}
		for name, v := range o.h.weights {
			for i, x := range v {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("ZeRO-%d: %s[%d] is %v", stage, name, i, x)
				}
			}
		}
		if n := len(o.disagree); n > 0 {
			t.Errorf("ZeRO-%d: ranks disagree: %s", stage, o.disagree[0])
		}
	}
}

// TestB37SumsKeepTheirType: gradients are summed in the type in which they are accumulated: four bytes an element in float32, eight in float64.
func TestB37SumsKeepTheirType(t *testing.T) {
	for device, size := range map[string]int64{"float32": 4, "float64": 8} {
		c := base()
		c.Mesh.DP, c.Train.Device, c.Train.Steps = 2, device, 2
		res, err := Run(context.Background(), c, Options{Corpus: letters(t, 17, gridTokens)})
		if err != nil {
			t.Fatal(err)
		}
		want := 2 * size * parameters(t, configs.Resolved(c).Model)
		for _, e := range res.Comm {
			if e.Axis == "data" && e.Bytes != want {
				t.Errorf("%s: %v, want %d bytes", device, e, want)
			}
		}
	}
}

// TestGradientIsASum: four data ranks make the gradient that one makes; nothing divides but the loss itself.
func TestGradientIsASum(t *testing.T) {
	c := base()
	c.Mesh.DP, c.Optim.Rule, c.Optim.Clip = 4, "sgd", 0
	corpus := letters(t, 17, gridTokens)
	h4, res := cutRun(t, c, corpus)
	c1 := *c
	c1.Mesh.DP = 1
	h1, _ := cutRun(t, &c1, corpus)
	if d := compare(h4, h1); d.relative > equalTo {
		t.Errorf("relative difference %.3g at %s", d.relative, d.where)
	}
	for _, e := range res.Comm {
		if e.Axis == "data" && e.Kind != comm.KindAllReduce {
			t.Errorf("plain data parallelism calls %v", e)
		}
	}
}
