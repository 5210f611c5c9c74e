package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"triax/configs"
	"triax/data"
	"triax/nn"
	"triax/pp"
	"triax/tensor"
)

// generate continues the prompt token by token, through the whole mesh as it stands: pipeline stages pass rows on, tensor
// ranks bring their logits together on the last stage, and the chosen token goes to all.
func (r *run) generate(ctx context.Context, w *Worker) (string, error) {
	tok := r.corpus.Tokenizer
	cfg := r.plan.cfg
	ids, err := tok.Encode(data.Begin(tok), []byte(cfg.Train.Sample))
	if err != nil {
		return "", fmt.Errorf("train.sample: %w", err)
	}
	prompt := len(ids)
	rng := rand.New(rand.NewPCG(cfg.Train.Seed, uint64(len(ids))))
	c := w.newContinuation()
	defer c.close()
	for range cfg.Train.SampleTokens {
		next, err := c.next(ctx, ids, tok.Vocab(), func(logits []float64) int { return choose(logits, cfg.Train, rng.Float64()) })
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

// continuation is a text that grows. Keys and values of its tokens are kept (nn.Cache), so that a token costs one row. When the
// window is full the earlier half is forgotten. Context ranks, who share out a window's tokens, keep nothing and see the last S tokens anew.
type continuation struct {
	w       *Worker
	cache   *nn.Cache
	samples int // all alike: more than one where token rows are cut over tensor ranks
}

func (w *Worker) newContinuation() *continuation {
	c := &continuation{w: w, samples: 1}
	if w.part.of == 1 {
		c.cache = &nn.Cache{Room: w.cfg.Model.Sequence}
		if w.cfg.Mesh.SequenceParallel {
			c.samples = w.groups.tp.Size()
		}
	} else {
		for w.cfg.Mesh.SequenceParallel && c.samples*w.cfg.Model.Sequence/w.part.of%w.groups.tp.Size() != 0 {
			c.samples++
		}
	}
	return c
}

func (c *continuation) close() {
	if c.cache != nil {
		c.cache.Release()
	}
}

// window is the tokens that the model is given next, padded at the end where room is not enough to leave them out.
func (c *continuation) window(ids []int32) (tokens []int32, last int) {
	s := c.w.cfg.Model.Sequence
	if c.cache == nil {
		tokens = make([]int32, s)
		return tokens, copy(tokens, ids[max(0, len(ids)-s):]) - 1
	}
	if c.cache.Len == s {
		c.cache.Release()
		tokens = ids[len(ids)-max(1, s/2):]
	} else if c.cache.Len > 0 {
		tokens = ids[len(ids)-1:]
	} else {
		tokens = ids[max(0, len(ids)-s):]
	}
	return tokens, len(tokens) - 1
}

// next chooses the token after ids: the same on all ranks. pick chooses by the logits, on the ranks that have them.
func (c *continuation) next(ctx context.Context, ids []int32, vocab int, pick func(logits []float64) int) (int32, error) {
	w := c.w
	tokens, last := c.window(ids)
	list := make([]data.Sample, c.samples)
	masked := make([]int32, len(tokens))
	for i := range masked {
		masked[i] = data.Masked
	}
	for i := range list {
		list[i] = data.Sample{Index: i, Tokens: tokens, Targets: masked}
	}
	row := w.part.row(last, c.samples, len(tokens))
	chosen := -1.0
	w.train, w.cache = false, c.cache
	w.tap = func(logits *tensor.Tensor) error {
		if row < 0 {
			return nil
		}
		all, err := w.wholeRow(ctx, logits.Rows(row, row+1))
		if err == nil {
			chosen = float64(pick(all[:vocab]))
		}
		return err
	}
	defer func() { w.tap, w.cache = nil, nil }()
	if err := w.walkBatches(ctx, pp.ForwardOnly(w.sched, 1), [][]data.Sample{list}, 1, nil); err != nil {
		return 0, err
	}
	if c.cache != nil {
		c.cache.Len += len(tokens)
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

// choose draws from softmax(logits / temperature), of the top_k likeliest tokens, and of the fewest whose probabilities reach top_p (Holtzman
// et al. 2020, §3.1). Temperature 0 takes the likeliest. u in [0, 1) is the random draw.
func choose(logits []float64, how configs.TrainConfig, u float64) int {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	best := order[0]
	if how.Temperature == 0 {
		return best
	}
	if how.TopK > 0 {
		order = order[:min(how.TopK, len(order))]
	}
	weight := func(i int) float64 { return math.Exp((logits[i] - logits[best]) / how.Temperature) }
	sum := 0.0
	for _, i := range order {
		sum += weight(i)
	}
	if how.TopP < 1 {
		reached, n := 0.0, 0
		for reached < how.TopP*sum && n < len(order) {
			reached += weight(order[n])
			n++
		}
		order, sum = order[:max(1, n)], reached
	}
	for _, i := range order {
		if u -= weight(i) / sum; u < 0 {
			return i
		}
	}
	return best
}
