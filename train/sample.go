package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"triax/data"
	"triax/pp"
	"triax/tensor"
)

// generate continues the prompt token by token, through the whole mesh as it stands: pipeline stages pass the window on, tensor
// ranks bring their logits together on the last stage, and the chosen token goes to all. The window is the last S
// tokens. Nothing is cached between tokens.
func (r *run) generate(ctx context.Context, w *Worker) (string, error) {
	tok := r.corpus.Tokenizer
	cfg := r.plan.cfg
	ids, err := tok.Encode([]int32{tok.End()}, []byte(cfg.Train.Sample))
	if err != nil {
		return "", fmt.Errorf("train.sample: %w", err)
	}
	prompt := len(ids)
	rng := rand.New(rand.NewPCG(cfg.Train.Seed, uint64(len(ids))))
	for range cfg.Train.SampleTokens {
		window := ids[max(0, len(ids)-cfg.Model.Sequence):]
		next, err := w.next(ctx, window, tok.Vocab(), cfg.Train.Temperature, rng.Float64())
		if err != nil {
			return "", fmt.Errorf("sample: %w", err)
		}
		ids = append(ids, next)
		if next == tok.End() {
			break
		}
	}
	return cfg.Train.Sample + tok.Decode(ids[prompt:]), nil
}

// next chooses the token after a window: the same on all ranks. u in [0, 1) is the random draw.
func (w *Worker) next(ctx context.Context, window []int32, vocab int, temperature, u float64) (int32, error) {
	w.train = false
	seq, samples := w.cfg.Model.Sequence, 1
	for w.cfg.Mesh.SequenceParallel && samples*seq/w.part.of%w.groups.tp.Size() != 0 { // token rows are cut evenly
		samples++
	}
	row := w.part.row(len(window)-1, samples, seq)
	list := make([]data.Sample, samples)
	for i := range list {
		list[i] = data.Sample{Index: i, Tokens: make([]int32, seq), Targets: make([]int32, seq)}
		copy(list[i].Tokens, window)
		for j := range seq {
			list[i].Targets[j] = data.Masked
		}
	}
	chosen := -1.0
	w.tap = func(logits *tensor.Tensor) error {
		if row < 0 {
			return nil
		}
		all, err := w.wholeRow(ctx, logits.Rows(row, row+1))
		if err == nil {
			chosen = float64(choose(all[:vocab], temperature, u))
		}
		return err
	}
	defer func() { w.tap = nil }()
	if err := w.walkBatches(ctx, pp.ForwardOnly(w.sched, 1), [][]data.Sample{list}, 1, nil); err != nil {
		return 0, err
	}
	// One rank of those that know speaks; the others add nothing.
	if chosen < 0 || w.groups.tp.Place() != 0 || w.replica() != 0 {
		chosen = 0
	}
	sum, err := w.sum(ctx, chosen)
	return int32(sum), err
}

// wholeRow brings one row of logits together from the tensor ranks' columns, padding dropped.
func (w *Worker) wholeRow(ctx context.Context, row *tensor.Tensor) ([]float64, error) {
	t := w.groups.tp.Size()
	full := w.dev.New(tensor.Workspace, row.Len()*t)
	defer full.Release()
	if err := w.groups.tp.AllGather(ctx, w.dev, full, row); err != nil {
		return nil, err
	}
	out := make([]float64, full.Len())
	w.dev.Download(out, full)
	return out[:min(len(out), w.cfg.Model.Vocab)], nil
}

// choose draws from softmax(logits / temperature); temperature 0 takes the largest.
func choose(logits []float64, temperature, u float64) int {
	best := 0
	for i, x := range logits {
		if x > logits[best] {
			best = i
		}
	}
	if temperature == 0 {
		return best
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp((x - logits[best]) / temperature)
	}
	for i, x := range logits {
		if u -= math.Exp((x-logits[best])/temperature) / sum; u < 0 {
			return i
		}
	}
	return best
}
