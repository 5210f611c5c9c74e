package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"triax/configs"
	"triax/data"
	"triax/tensor"
)

// use runs do on every rank of a model that does not learn: ranks hold parameters, and neither gradients nor optimizer states.
func use(ctx context.Context, cfg *configs.Config, opts Options, corpus *data.Corpus, do func(ctx context.Context, r *run, w *Worker) error) (err error) {
	if err := openable(cfg, opts); err != nil {
		return err
	}
	p, err := newPlan(cfg)
	if err != nil {
		return err
	}
	p.frozen = true
	if err := p.knows(corpus.Tokenizer); err != nil {
		return err
	}
	closed, err := p.start(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	r := &run{plan: p, opts: opts, corpus: corpus, recs: newRecords(p)}
	r.use = func(ctx context.Context, w *Worker) error { return do(ctx, r, w) }
	return r.start(ctx)
}

// Score is what a model makes of a text.
type Score struct {
	Loss       float64 `json:"loss"`       // mean over tokens, in nats
	Perplexity float64 `json:"perplexity"` // exp(loss)
	Tokens     int     `json:"tokens"`
	Batches    int     `json:"batches"`
	Seconds    float64 `json:"seconds"`
}

// String is one line.
func (e *Score) String() string {
	return fmt.Sprintf("loss %.6f  perplexity %.4f  %d tokens in %d batches  %.0f tokens/s", e.Loss, e.Perplexity, e.Tokens, e.Batches, float64(e.Tokens)/e.Seconds)
}

// Evaluate is the loss over the held-out tokens of the configuration's text, or over all of it where nothing is held out; train.eval_batches
// bounds the batches, 0 is all. The result is that of one rank on any mesh, but for the order of sums.
func Evaluate(ctx context.Context, cfg *configs.Config, opts Options) (*Score, error) {
	corpus := opts.Corpus
	if corpus == nil {
		var err error
		if corpus, err = data.Open(cfg.Data); err != nil {
			return nil, err
		}
	}
	set, err := corpus.HeldOut(cfg.Model.Sequence, cfg.Train.Batch)
	if set == nil && err == nil {
		set, err = corpus.All(cfg.Model.Sequence, cfg.Train.Batch)
	}
	if err != nil {
		return nil, err
	}
	e := &Score{Batches: set.Steps()}
	if n := cfg.Train.EvalBatches; n > 0 {
		e.Batches = min(n, e.Batches)
	}
	err = use(ctx, cfg, opts, corpus, func(ctx context.Context, _ *run, w *Worker) error {
		start, sum, valid := time.Now(), 0.0, 0
		for i := 1; i <= e.Batches; i++ {
			b := set.Global(i)
			loss, err := w.Evaluate(ctx, b)
			if err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
			sum, valid = sum+loss*float64(b.Valid), valid+b.Valid
		}
		if w.wire.Rank() == 0 {
			e.Loss, e.Tokens, e.Seconds = sum/float64(max(1, valid)), valid, time.Since(start).Seconds()
			e.Perplexity = math.Exp(e.Loss)
		}
		return nil
	})
	return e, err
}

// Generate continues the text train.sample as the configuration says: train.sample_tokens, temperature, top_k, top_p, seed.
func Generate(ctx context.Context, cfg *configs.Config, opts Options) (string, error) {
	tok, err := data.NewTokenizer(cfg.Data.Tokenizer)
	if err != nil {
		return "", err
	}
	var text string
	err = use(ctx, cfg, opts, &data.Corpus{Tokenizer: tok}, func(ctx context.Context, r *run, w *Worker) error {
		s, err := r.generate(ctx, w)
		if w.wire.Rank() == 0 {
			text = s
		}
		return err
	})
	return text, err
}

// Held is what one rank holds of a model.
type Held struct {
	Rank       int    `json:"rank"`
	Place      string `json:"place"`
	Parameters int64  `json:"parameters"` // bytes
	Peak       int64  `json:"peak"`       // bytes of its memory at any time
}

// Import reads a model into every rank of the mesh, and says what each holds and how long it took.
func Import(ctx context.Context, cfg *configs.Config, opts Options) ([]Held, time.Duration, error) {
	tok, err := data.NewTokenizer("bytes") // none is asked
	if err != nil {
		return nil, 0, err
	}
	held := make([]Held, cfg.Mesh.World())
	start := time.Now()
	err = use(ctx, cfg, opts, &data.Corpus{Tokenizer: small{tok}}, func(_ context.Context, r *run, w *Worker) error {
		h, rank := w.dev.Heap(), w.wire.Rank()
		held[rank] = Held{rank, r.plan.mesh.Place(rank), h.Usage(tensor.Parameters).Now, h.Total().Peak}
		return nil
	})
	return held, time.Since(start), err
}

// small is a tokenizer that suits any vocabulary.
type small struct{ data.Tokenizer }

func (small) Vocab() int { return 0 }
