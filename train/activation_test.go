package train

import (
	"context"
	"sync"
	"testing"

	"triax/configs"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
)

// watching notes the activations in memory when the backward pass begins.
type watching struct {
	tensor.Device
	seen func(bytes int64)
}

func (w *watching) LossGrad(logits, max, sum, targets *tensor.Tensor, lo, valid int, scale float64) {
	w.seen(w.Heap().Usage(tensor.Activations).Now)
	w.Device.LossGrad(logits, max, sum, targets, lo, valid, scale)
}

// TestActivationFormulas: what a block keeps for its backward is, a token, 16 D elements; with t tensor ranks 4 D + 12 D/t, and with sequence
// parallelism 16 D/t; recomputing attention 12 D instead, recomputing all D. These are the terms of Korthikanti et al. 2022, table 2 and
// equations 1 to 4, less their 5 a s/h for scores, which tiled attention does not keep, and two dropout masks, which are made again.
func TestActivationFormulas(t *testing.T) {
	const L, D, H, V, S = 4, 32, 4, 64, 16
	const F = 4 * D
	for _, tp := range []int{1, 2, 4} {
		for _, sequence := range []bool{false, true} {
			for _, mode := range nn.RecomputeModes {
				if tp == 1 && sequence {
					continue
				}
				c := base()
				c.Model = nn.Config{Family: nn.GPT2, Layers: L, Width: D, Heads: H, Vocab: V, Sequence: S, Dropout: 0.1, Recompute: mode}
				c.Mesh.TP, c.Mesh.SequenceParallel, c.Train.Batch, c.Train.Steps, c.Optim.Warmup = tp, sequence, 4, 1, 0
				T := 4 * S
				rows := T // of what every rank would hold whole
				if sequence {
					rows = T / tp
				}
				norms := 2 * (D + 1 + 1) * rows // two inputs, their means and deviations
				attention := D*rows + 4*D*T/tp + H*T/tp
				feed := D*rows + 2*F*T/tp
				block := norms + attention + feed
				switch mode {
				case nn.RecomputeSelective:
					block = norms + D*rows + feed
				case nn.RecomputeFull:
					block = D * rows
				}
				end := (D+2)*rows + D*rows + T*V/tp + 3*T // last norm, output matrix, logits, three numbers a token
				want := int64(4 * (L*block + end))
				for rank, got := range activations(t, c) {
					if got != want {
						t.Errorf("tp %d, sequence parallel %v, recompute %s: rank %d keeps %d bytes, formula %d", tp, sequence, mode, rank, got, want)
					}
				}
				t.Logf("tp %d, sequence parallel %-5v, recompute %-9s: %4d bytes a token and block, %.2f D elements",
					tp, sequence, mode, 4*block/T, float64(block)/float64(T*D))
			}
		}
	}
}

func activations(t *testing.T, c *configs.Config) []int64 {
	t.Helper()
	var mu sync.Mutex
	got := make([]int64, c.Mesh.World())
	_, err := Run(context.Background(), c, Options{
		Corpus: letters(t, 64, gridTokens),
		Open: func(rank int) tensor.Device {
			return &watching{cpu.New(cpu.Options{Float: tensor.F32}), func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				got[rank] = n
			}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
