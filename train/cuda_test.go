package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"testing"

	"triax/configs"
	"triax/cuda"
	"triax/cuda/driver"
	"triax/cuda/emu"
	"triax/nn"
	"triax/tensor"
)

// emulated is the emulated machine of this package's tests, made once.
var emulated struct {
	once sync.Once
	m    *cuda.Machine
	err  error
}

// gpus opens devices of the NVIDIA device of this machine with TRIAX_CUDA, else of the emulator, which has one for each order of threads:
// ranks take them in turn.
func gpus(t *testing.T, float tensor.DType) func(rank int) tensor.Device {
	t.Helper()
	real := os.Getenv("TRIAX_CUDA") != ""
	emulated.once.Do(func() {
		l, kernels := driver.Find(), ""
		if !real {
			if l, kernels, emulated.err = emu.Cached(); emulated.err != nil {
				return
			}
		}
		emulated.m, emulated.err = cuda.Open(l, kernels)
	})
	err := emulated.err
	if (errors.Is(err, emu.ErrNoCompiler) || errors.Is(err, driver.ErrAbsent)) && !real && os.Getenv("TRIAX_EMU") == "" {
		t.Skipf("nothing is trained on the emulated device, which needs g++ and a build with cgo: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	infos, err := emulated.m.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return func(rank int) tensor.Device {
		d, err := emulated.m.Device(cuda.Options{Ordinal: rank % len(infos), Float: float, Poison: true})
		if err != nil {
			panic(err)
		}
		return d
	}
}

// TestCUDABound: on the NVIDIA device a run, cut or not, stays as near to the float64 reference as rounding alone explains: losses, norms, every gradient, weights
// and states. The bound is that of TestFloat32Bound.
func TestCUDABound(t *testing.T) {
	open := gpus(t, tensor.F32)
	for _, x := range []struct {
		family                  nn.Family
		experts                 int
		pp, dp, tp, cp, ep, all int
		brief                   bool // enough with -short
	}{
		{nn.GPT2, 0, 1, 1, 1, 1, 1, 1, false}, {nn.GPT2, 0, 2, 2, 2, 1, 1, 8, true},
		{nn.Llama, 0, 1, 1, 1, 1, 1, 1, true}, {nn.Llama, 0, 2, 2, 2, 1, 1, 8, false}, {nn.Llama, 0, 1, 1, 1, 2, 1, 2, false}, {nn.Llama, 4, 1, 1, 1, 1, 2, 2, false},
	} {
		if testing.Short() && !x.brief {
			continue
		}
		c := base()
		plainSGD(c)
		c.Model.Family, c.Model.Tied = x.family, true
		if x.experts > 0 {
			experts(1, 2)(c)
		}
		corpus := letters(t, 17, gridTokens)
		want := uncut(t, c, corpus)
		bound := 8 * float64(2*c.Model.Layers+4) * math.Sqrt(gridBatch*gridSequence) * math.Ldexp(1, -24)
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Mesh.CP, c.Mesh.EP, c.Zero.Stage, c.Pipeline.Microbatches = x.pp, x.dp, x.tp, x.cp, x.ep, 2, 3
		o := newObserver(c.Train.Steps)
		res, err := Run(context.Background(), c, Options{Corpus: corpus, OnWorker: o.attach, Open: open})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Memory) != x.all {
			t.Errorf("%d ranks, want %d", len(res.Memory), x.all)
		}
		o.h.loss, o.h.norm = res.Loss, res.GradNorm
		d := compare(o.h, want)
		what := fmt.Sprintf("%s experts %d pp%d dp%d tp%d cp%d ep%d", x.family, x.experts, x.pp, x.dp, x.tp, x.cp, x.ep)
		if d.relative > bound || len(o.disagree) > 0 {
			t.Errorf("%s: relative difference %.3g at %s, bound %.3g; disagreements %v", what, d.relative, d.where, bound, o.disagree)
		}
		t.Logf("%s: relative difference %.2g at %s, bound %.2g", what, d.relative, d.where, bound)
	}
}

// TestCUDABF16: with bfloat16 it trains as the processor does with bfloat16, within the bounds of TestBF16Meshes.
func TestCUDABF16(t *testing.T) {
	if testing.Short() {
		t.Skip("with -short float32 alone")
	}
	open := gpus(t, tensor.BF16)
	for _, family := range []nn.Family{nn.GPT2, nn.Llama} {
		make := func() *configs.Config {
			c := base()
			plainSGD(c)
			c.Model.Family, c.Model.Tied = family, true
			return c
		}
		layers, u := float64(2*make().Model.Layers+4), math.Ldexp(1, -9)
		lossBound, normBound := 2*math.Sqrt(layers)*u, 2*math.Sqrt(2*layers)*u
		want := bf16Run(t, make(), Options{})
		for _, m := range [][3]int{{1, 1, 1}, {2, 2, 2}} {
			c := make()
			c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Pipeline.Microbatches = m[0], m[1], m[2], 3, 3
			got := bf16Run(t, c, Options{Open: open})
			loss, norm := 0.0, 0.0
			for i := range want.Loss {
				loss = max(loss, math.Abs(got.Loss[i]-want.Loss[i]))
				norm = max(norm, math.Abs(got.GradNorm[i]/want.GradNorm[i]-1))
			}
			if !(loss <= lossBound && norm <= normBound) {
				t.Errorf("%s %v: losses differ by %.2g (bound %.2g), norms by %.2g of them (bound %.2g)", family, m, loss, lossBound, norm, normBound)
			}
			t.Logf("%s pp%d dp%d tp%d: losses differ by %.2g (bound %.2g), norms by %.2g (bound %.2g)", family, m[0], m[1], m[2], loss, lossBound, norm, normBound)
		}
	}
}

// TestCUDATiny: configs/tiny.toml, in its own size, trains on the NVIDIA device as on the processor; uncut, and cut 2x2x2. TRIAX_TINY_STEPS
// takes more of its steps than the first four.
//
// The bounds: a token's loss is the end of 2L+4 layers that each add up at most n terms, width, 4 width or vocabulary, with a relative error of 8 sqrt(n) u at most (as in
// TestFloat32Bound), independent from token to token: in the mean over T of them 8 (2L+4) sqrt(n/T) u. AdamW's step moves each of N weights by lr at most, whatever the
// gradient, so a relative error e of gradients moves the next losses by e lr |g|_1, at most e lr sqrt(N) |g|, and such moves add up over steps. bfloat16 as in TestBF16Meshes.
func TestCUDATiny(t *testing.T) {
	if testing.Short() {
		t.Skip("with -short smaller models alone")
	}
	cfg, err := configs.Load("../configs/tiny.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Train.Steps, cfg.Train.EvalBatches = 4, 0
	if s := os.Getenv("TRIAX_TINY_STEPS"); s != "" {
		if cfg.Train.Steps, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	type cut struct {
		precision   string
		pp, dp, tp  int
		zero, micro int
	}
	reference := map[string]*Result{}
	for _, x := range []cut{{configs.PrecisionFull, 1, 1, 1, 0, 1}, {configs.PrecisionFull, 2, 2, 2, 1, 2}, {configs.PrecisionBF16, 1, 1, 1, 0, 1}, {configs.PrecisionBF16, 2, 2, 2, 3, 2}} {
		c := *cfg
		c.Train.Precision = x.precision
		float := tensor.F32
		if x.precision == configs.PrecisionBF16 {
			float = tensor.BF16
		}
		want := reference[x.precision]
		if want == nil {
			if want, err = Run(context.Background(), &c, Options{}); err != nil {
				t.Fatal(err)
			}
			reference[x.precision] = want
		}
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Pipeline.Microbatches = x.pp, x.dp, x.tp, x.zero, x.micro
		got, err := Run(context.Background(), &c, Options{Open: gpus(t, float)})
		if err != nil {
			t.Fatal(err)
		}
		tokens, layers := float64(c.Train.Batch*c.Model.Sequence), float64(2*c.Model.Layers+4)
		n := float64(max(4*c.Model.Width, c.Model.Resolved().Vocab))
		norm, worst := 0.0, [2]float64{}
		for i := range want.Loss {
			norm = max(norm, want.GradNorm[i])
			worst[0] = max(worst[0], math.Abs(got.Loss[i]-want.Loss[i]))
			worst[1] = max(worst[1], math.Abs(got.GradNorm[i]/want.GradNorm[i]-1))
		}
		e := 8 * layers * math.Sqrt(n/tokens) * math.Ldexp(1, -24)
		bound := e * (want.Loss[0] + float64(c.Train.Steps)*c.Optim.LR*math.Sqrt(float64(want.Params))*norm)
		if float == tensor.BF16 {
			bound = 2 * math.Sqrt(layers) * math.Ldexp(1, -9)
		}
		last := len(want.Loss) - 1
		t.Logf("%s pp%d dp%d tp%d: %d steps, loss %.4f, on the processor %.4f; losses differ by %.2g at most (bound %.2g), norms by %.2g of them",
			float, x.pp, x.dp, x.tp, c.Train.Steps, got.Loss[last], want.Loss[last], worst[0], bound, worst[1])
		if !(worst[0] <= bound) {
			t.Errorf("%s pp%d dp%d tp%d: losses %v, on the processor %v", float, x.pp, x.dp, x.tp, got.Loss, want.Loss)
		}
	}
}
