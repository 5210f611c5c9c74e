package train

import (
	"context"
	"fmt"
	"testing"

	"triax/comm"
	"triax/configs"
	"triax/nn"
)

// line is calls and bytes of one axis and kind, summed over ranks, of one step.
type line struct{ calls, bytes int64 }

// ledger runs two steps and returns what a step costs.
func ledger(t *testing.T, c *configs.Config) map[string]line {
	t.Helper()
	c.Train.Steps, c.Optim.Warmup, c.Train.Device = 2, 0, "float32"
	res, err := Run(context.Background(), c, Options{Corpus: letters(t, c.Model.Vocab, gridTokens)})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]line{}
	for _, e := range res.Comm {
		if e.Kind != comm.KindRecv {
			out[e.Axis+" "+string(e.Kind)] = line{e.Calls, e.Bytes}
		}
	}
	return out
}

// parameters is the number of elements of the whole model.
func parameters(t *testing.T, cfg nn.Config) int64 {
	t.Helper()
	layers, err := nn.Whole(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range uniqueParams(layers) {
		n += p.Elements()
	}
	return int64(n)
}

// TestLedgerFormulas compares the bytes of one step with the closed formulas: data parallelism moves the model once
// (Rajbhandari et al. 2020, §7), tensor parallelism four activations a block and microbatch (Shoeybi et al. 2019, §3), a pipeline two
// a boundary and microbatch (Narayanan et al. 2021, §2.2).
func TestLedgerFormulas(t *testing.T) {
	const fp32 = 4
	model := nn.Config{Family: nn.GPT2, Layers: 8, Width: 64, Heads: 8, Hidden: 128, Vocab: 64, Sequence: gridSequence, InitStd: 0.1}
	make := func(pp, dp, tp, stage, m int) *configs.Config {
		c := base()
		c.Model = model.Resolved()
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Pipeline.Microbatches = pp, dp, tp, stage, m
		c.Zero.BucketElements = 1 << 30
		c.Train.Batch = 32
		return c
	}
	L, D := int64(model.Layers), int64(model.Width)
	N := parameters(t, model.Resolved())
	rows := func(c *configs.Config) int64 { // tokens of a microbatch
		return int64(c.Train.Batch / c.Mesh.DP / c.Pipeline.Microbatches * c.Model.Sequence)
	}
	check := func(name string, c *configs.Config, want map[string]line) {
		t.Run(name, func(t *testing.T) {
			ranks := int64(c.Mesh.World())
			want["world all_reduce"] = line{ranks, ranks * 16} // sum of squares and loss, in float64
			got := ledger(t, c)
			for k, w := range want {
				if got[k] != w {
					t.Errorf("%s: %+v, formula %+v", k, got[k], w)
				}
				t.Logf("%-22s %4d calls %9d bytes", k, w.calls, w.bytes)
			}
			for k, g := range got {
				if _, ok := want[k]; !ok {
					t.Errorf("%s: %+v, formula nothing", k, g)
				}
			}
		})
	}

	for stage := range 3 {
		c := make(1, 8, 1, stage, 2)
		want := map[string]line{}
		switch stage {
		case 0:
			want["data all_reduce"] = line{8, 8 * N * fp32}
		case 1:
			want["dp reduce_scatter"], want["dp all_gather"] = line{8, 8 * N * fp32}, line{8, 8 * N * fp32}
		case 2: // the reduction is inside the accumulation
			want["dp reduce_scatter"], want["dp all_gather"] = line{16, 2 * 8 * N * fp32}, line{8, 8 * N * fp32}
		}
		check(fmt.Sprintf("dp8 zero%d", stage), c, want)
	}
	c := make(1, 8, 1, 3, 2)
	units := L + 3 // embedding, blocks, norm, head; the loss has no parameters
	check("dp8 zero3", c, map[string]line{
		"dp all_gather":     {8 * 2 * 2 * units, 8 * 2 * 2 * N * fp32}, // forward and backward of two microbatches
		"dp reduce_scatter": {8 * 2 * units, 8 * 2 * N * fp32},
	})

	c = make(1, 1, 8, 0, 2)
	T := rows(c)
	perMicro := (4*L+2)*T*D + 3*T // two more for embedding and head, and three numbers a token for the loss
	check("tp8", c, map[string]line{"tp all_reduce": {8 * 2 * (4*L + 2 + 2), 8 * 2 * perMicro * fp32}})

	c = make(8, 1, 1, 0, 4)
	check("pp8", c, map[string]line{"pp send": {7 * 4 * 2, 7 * 4 * 2 * rows(c) * D * fp32}})

	c = make(2, 2, 2, 1, 2)
	T = rows(c)
	local := localSizes(t, c) // a rank's parameters, by pipeline stage
	check("2x2x2 zero1", c, map[string]line{
		"pp send":           {4 * 2 * 2, 4 * 2 * 2 * T * D * fp32},
		"tp all_reduce":     {4 * 2 * (4*L + 2 + 2), 4 * 2 * ((4*L+2)*T*D + 3*T) * fp32},
		"dp reduce_scatter": {8, 4 * (local[0] + local[1]) * fp32},
		"dp all_gather":     {8, 4 * (local[0] + local[1]) * fp32},
	})
}

// localSizes is the elements, padding included, that a tensor rank holds on each pipeline stage.
func localSizes(t *testing.T, c *configs.Config) [2]int64 {
	t.Helper()
	var out [2]int64
	_, err := Run(context.Background(), c, Options{Corpus: letters(t, c.Model.Vocab, gridTokens), OnWorker: func(step int, w *Worker) error {
		if step == 0 && w.groups.tp.Place() == 0 && w.groups.data.Place() == 0 {
			n := int64(0)
			for _, s := range w.stages {
				for _, l := range s.layers {
					for _, p := range l.Params() {
						n += int64(p.Len())
					}
				}
			}
			out[w.coord[0]] = (n + 1) / 2 * 2
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMemoryFallsLinearly measures the claim of ZeRO: weights, gradients and moments of a rank, for every stage and data degree, against
// 4N (4 bytes each; Rajbhandari et al. 2020, §5 and figure 1, in fp32 throughout).
func TestMemoryFallsLinearly(t *testing.T) {
	cfg := base()
	cfg.Model.Layers, cfg.Model.Width, cfg.Model.Hidden, cfg.Train.Batch = 6, 48, 192, 32
	cfg.Zero.BucketElements = 1 << 30
	N := float64(parameters(t, cfg.Model.Resolved()))
	for stage := range 4 {
		for _, d := range []int{1, 2, 4, 8} {
			c := *cfg
			c.Mesh.DP, c.Zero.Stage, c.Train.Device, c.Train.Steps, c.Optim.Warmup = d, stage, "float32", 2, 0
			res, err := Run(context.Background(), &c, Options{Corpus: letters(t, 17, gridTokens)})
			if err != nil {
				t.Fatal(err)
			}
			m := res.Memory[d-1]
			states := float64(m.Parameters + m.Gradients + m.Optimizer)
			w, g, o := 4.0, 4.0, 8.0
			if stage >= 1 {
				o /= float64(d)
			}
			if stage >= 2 {
				g /= float64(d)
			}
			if stage >= 3 {
				w /= float64(d)
			}
			want := (w + g + o) * N
			t.Logf("ZeRO-%d dp %d: parameters %7d gradients %7d optimizer %7d, formula %9.0f; buffers at most %7d, activations %7d",
				stage, d, m.Parameters, m.Gradients, m.Optimizer, want, m.Buffers, m.Activations)
			// Padding adds less than d elements a bucket, of which stage 3 has one a layer.
			if slack := float64(16 * d * 12); states < want-1 || states > want+slack {
				t.Errorf("ZeRO-%d dp %d: %v bytes of states, formula %v", stage, d, states, want)
			}
		}
	}
}
