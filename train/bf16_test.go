package train

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"triax/checkpoint"
	"triax/configs"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
)

func bf16Run(t *testing.T, c *configs.Config, opts Options) *Result {
	t.Helper()
	c.Train.Device, c.Train.Precision = "float32", configs.PrecisionBF16
	opts.Corpus = letters(t, c.Model.Vocab, gridTokens)
	if err := configs.Resolved(c).Validate(); err != nil {
		t.Fatal(err)
	}
	res, err := Run(context.Background(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// bf16Meshes are ways to cut base: pp, dp, tp, cp, ep, replicas, microbatches.
var bf16Meshes = [][7]int{
	{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 3}, {1, 2, 1, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1, 2}, {1, 1, 2, 1, 1, 1, 2}, {1, 1, 4, 1, 1, 1, 1},
	{2, 1, 1, 1, 1, 1, 3}, {4, 1, 1, 1, 1, 1, 4}, {1, 1, 1, 2, 1, 1, 1}, {2, 2, 2, 1, 1, 1, 3}, {2, 1, 2, 2, 1, 1, 2}, {1, 2, 1, 1, 1, 2, 1}, {1, 1, 1, 1, 2, 1, 2},
}

// TestBF16Meshes: with bfloat16 parameters and activations every mesh and ZeRO stage trains like the uncut bfloat16 run, and that like float32.
//
// The bounds: every layer on the way, 2L+4 of them, rounds its output once with an error of at most u = 2^-9 of it, independent of the others, so
// errors add up like the square root of their number; where a mesh sums in another order results round differently and no more than that. The
// loss is a mean over tokens; its difference is bounded by that relative error of the logits, whose size here is below 2: sqrt(2L+4) 2 u. A
// norm is relative, of gradients that have passed all layers twice: sqrt(2 (2L+4)) u times a constant of 2 for products of two rounded factors.
// Three steps of SGD with momentum move weights by the same relative error.
func TestBF16Meshes(t *testing.T) {
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		for _, experts := range []int{0, 4} {
			make := func() *configs.Config {
				c := base()
				plainSGD(c)
				c.Model.Family, c.Model.Tied, c.Model.Experts = family, true, experts
				if experts > 0 {
					c.Model.TopK = 4 // all of them: which ones a token takes must not hang on rounding
				}
				return c
			}
			layers, u := float64(2*make().Model.Layers+4), math.Ldexp(1, -9)
			lossBound, normBound := 2*math.Sqrt(layers)*u, 2*math.Sqrt(2*layers)*u
			wide := make()
			wide.Train.Device = "float32"
			full, err := Run(context.Background(), wide, Options{Corpus: letters(t, wide.Model.Vocab, gridTokens)})
			if err != nil {
				t.Fatal(err)
			}
			whole := bf16Run(t, make(), Options{})
			near := func(what string, got, want *Result) {
				t.Helper()
				worst := [2]float64{}
				for i := range want.Loss {
					worst[0] = max(worst[0], math.Abs(got.Loss[i]-want.Loss[i]))
					worst[1] = max(worst[1], math.Abs(got.GradNorm[i]/want.GradNorm[i]-1))
				}
				if !(worst[0] <= lossBound && worst[1] <= normBound) {
					t.Errorf("%s: losses differ by %.2g (bound %.2g), norms by %.2g of them (bound %.2g)", what, worst[0], lossBound, worst[1], normBound)
				}
				t.Logf("%-60s losses differ by %.2g, norms by %.2g", what, worst[0], worst[1])
			}
			name := fmt.Sprintf("%s, %d experts", family, experts)
			near(name+": bf16 and float32", whole, full)
			if slices.Equal(whole.Loss, full.Loss) {
				t.Errorf("%s: nothing was rounded", name)
			}
			for i, m := range bf16Meshes {
				if (experts > 0) != (m[4] > 1) && experts > 0 && i%4 != 1 || experts == 0 && m[4] > 1 {
					continue
				}
				c := make()
				c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Mesh.CP, c.Mesh.EP, c.Mesh.Replicate, c.Pipeline.Microbatches = m[0], m[1], m[2], m[3], m[4], m[5], m[6]
				for stage := range 4 {
					if testing.Short() && (i+stage)%4 != 0 {
						continue
					}
					c.Zero.Stage, c.Zero.Overlap, c.Train.Verify = stage, stage%2 == 1, i%2 == 0
					c.Mesh.SequenceParallel = m[2] > 1 && stage > 1
					c.CPU.ThreadsPerRank = 1
					near(fmt.Sprintf("%s %v zero%d", name, m, stage), bf16Run(t, c, Options{}), whole)
				}
			}
		}
	}
}

// TestBF16WithoutInstructions: a processor without products of bfloat16 trains too, by widening: the same but for the order of sums.
func TestBF16WithoutInstructions(t *testing.T) {
	c := base()
	plainSGD(c)
	want := bf16Run(t, c, Options{})
	for _, isa := range cpu.Supported() {
		got := bf16Run(t, c, Options{Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.BF16, ISA: isa, Poison: true}) }})
		for i, x := range got.Loss {
			if math.Abs(x-want.Loss[i]) > math.Ldexp(8, -9) {
				t.Errorf("%s: loss %v in step %d, want %v", isa, x, i+1, want.Loss[i])
			}
		}
	}
}

// TestBF16MasterCopies: updates far below half a unit in the last place of a weight add up; without a master copy nothing would ever change.
func TestBF16MasterCopies(t *testing.T) {
	c := base()
	plainSGD(c)
	c.Optim.LR, c.Train.Steps = 1e-5, 3
	var start, end map[string][]float64
	bf16Run(t, c, Options{OnWorker: func(step int, w *Worker) error {
		now := map[string][]float64{}
		for p := range w.opt.Each {
			if p.Weight.DType != tensor.F32 || p.Param.Data.DType != tensor.BF16 || p.Param.Grad.DType != tensor.F32 {
				t.Errorf("%s: master copy %v, weight %v, gradient %v", p.Param.Name, p.Weight.DType, p.Param.Data.DType, p.Param.Grad.DType)
			}
			now[p.Param.Name] = download(w.dev, p.Weight)
		}
		if step == 0 {
			start = now
		}
		end = now
		return nil
	}})
	moved := 0
	for name, x := range end {
		for i, v := range x {
			if d := math.Abs(v - start[name][i]); d > 0 && d < math.Abs(v)*math.Ldexp(1, -9) {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("no master copy moved by less than bfloat16 can tell")
	}
}

// TestBF16Resumes: a run saved and gone on with, under another mesh and stage, ends with the master copies of the one never stopped: they are what is saved, and
// the rounded weights follow from them. Frozen weights, which have none, are saved as they are.
func TestBF16Resumes(t *testing.T) {
	for _, c := range []struct{ name, both, from, to string }{
		{"same mesh", "", "", ""},
		{"another stage", "", "mesh.dp=2 zero.stage=3", "mesh.dp=3 zero.stage=1"},
		{"another pipeline", "", "mesh.pp=2 zero.stage=2", "mesh.pp=1"},
		{"state on disk", "", "mesh.dp=2 zero.stage=2 zero.offload=disk", "mesh.dp=2"},
		{"adapters", "model.lora_rank=2", "mesh.dp=2 zero.stage=3", "mesh.dp=2 zero.stage=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := func(set string) *configs.Config {
				cfg := configured(t, append([]string{"train.device=float32", "train.precision=bf16"}, strings.Fields(c.both+" "+set)...)...)
				if strings.Contains(set, "offload") {
					cfg.Zero.OffloadDir = t.TempDir()
				}
				return cfg
			}
			run := func(cfg *configs.Config, opts Options) (*Result, map[string][]float64) {
				ends := map[string][]float64{}
				var mu sync.Mutex
				opts.OnWorker = func(step int, w *Worker) error {
					if step < cfg.Train.Steps {
						return nil
					}
					mu.Lock()
					defer mu.Unlock()
					for p := range w.opt.Owned {
						for i, x := range download(w.dev, p.Weight) {
							if at := p.Param.Logical(p.Lo + i); at >= 0 {
								key := p.Param.Name
								if ends[key] == nil {
									ends[key] = make([]float64, p.Param.Elements())
								}
								ends[key][at] = x
							}
						}
					}
					return nil
				}
				return bf16Run(t, cfg, opts), ends
			}
			whole, want := run(with(c.to), Options{})
			folder, stop := t.TempDir(), make(chan struct{})
			first := with(c.from)
			res := bf16Run(t, first, Options{Folder: folder, Stop: stop, OnWorker: func(step int, w *Worker) error {
				if step == 2 && w.wire.Rank() == 0 {
					close(stop)
				}
				return nil
			}})
			if !res.Stopped {
				t.Fatal("not stopped")
			}
			k, refused, err := checkpoint.Latest(context.Background(), filepath.Join(folder, checkpointFolder))
			if err != nil || k == nil || len(refused) > 0 {
				t.Fatalf("%v, %v, %v", k, refused, err)
			}
			defer k.Close()
			got, ends := run(with(c.to), Options{Resume: k})
			for i, loss := range got.Loss {
				if d := math.Abs(loss - whole.Loss[2+i]); d > 1e-5 {
					t.Errorf("step %d: loss %v, without the stop %v", 3+i, loss, whole.Loss[2+i])
				}
			}
			for name, x := range want {
				for i, v := range x {
					if math.Abs(ends[name][i]-v) > 1e-4 {
						t.Fatalf("%s element %d is %v, without the stop %v", name, i, ends[name][i], v)
					}
				}
			}
			if c.from == c.to && !slices.Equal(got.Loss, whole.Loss[2:]) {
				t.Errorf("losses %v, without the stop %v", got.Loss, whole.Loss[2:])
			}
		})
	}
}
