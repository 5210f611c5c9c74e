package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"triax/configs"
	"triax/cpu"
	"triax/tensor"
)

// TestCacheIsWindow: with keys and values kept, every next token's logits are those of the whole window computed anew, on every mesh; beyond the window a text
// goes on.
func TestCacheIsWindow(t *testing.T) {
	for _, set := range [][]string{
		{},
		{"mesh.tp=4", "model.family=llama", "model.kv_heads=2"},
		{"mesh.tp=2", "mesh.sequence_parallel=true", "mesh.dp=2", "zero.stage=3"},
		{"mesh.pp=2", "pipeline.schedule=zb-v", "pipeline.microbatches=4", "model.family=llama", "model.recompute=full"},
		{"mesh.pp=3", "mesh.tp=2", "mesh.sequence_parallel=true", "zero.stage=1", "model.tied=true"},
		{"mesh.ep=2", "model.experts=4", "model.top_k=2", "mesh.tp=2"},
	} {
		t.Run(fmt.Sprint(set), func(t *testing.T) {
			cfg := base()
			cfg.Train.Steps = 1
			text, err := cfg.TOML()
			if err != nil {
				t.Fatal(err)
			}
			if cfg, err = configs.Parse(text, set); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			got, want := map[int][]float64{}, map[int][]float64{} // logits by length of the text
			grown := 0
			_, err = Run(context.Background(), cfg, Options{
				Corpus: letters(t, cfg.Model.Vocab, gridTokens),
				Open:   func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64, Poison: true}) },
				OnWorker: func(step int, w *Worker) error {
					if step == 0 {
						return nil
					}
					kept, anew := w.newContinuation(), w.newContinuation()
					anew.cache = nil
					defer kept.close()
					ids := []int32{3, 1, 4}
					for range 2*gridSequence + 3 {
						note := func(into map[int][]float64) func([]float64) int {
							return func(logits []float64) int {
								mu.Lock()
								defer mu.Unlock()
								into[len(ids)] = slices.Clone(logits)
								return choose(logits, configs.TrainConfig{TopP: 1}, 0)
							}
						}
						next, err := kept.next(context.Background(), ids, 17, note(got))
						if err != nil {
							return err
						}
						if len(ids) <= gridSequence {
							if _, err := anew.next(context.Background(), ids, 17, note(want)); err != nil {
								return err
							}
						}
						ids = append(ids, next)
					}
					mu.Lock()
					grown = len(ids)
					mu.Unlock()
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(want) != gridSequence-2 || grown != 3+2*gridSequence+3 {
				t.Fatalf("%d windows compared, text of %d", len(want), grown)
			}
			for n, w := range want {
				for i := range w {
					if math.Abs(got[n][i]-w[i]) > 1e-11 {
						t.Errorf("text of %d: logit %d is %v, want %v", n, i, got[n][i], w[i])
					}
				}
			}
		})
	}
}

// TestChoose draws from four tokens with probabilities 0.1, 0.4, 0.2, 0.3.
func TestChoose(t *testing.T) {
	logits := []float64{math.Log(0.1), math.Log(0.4), math.Log(0.2), math.Log(0.3)}
	for _, c := range []struct {
		how  configs.TrainConfig
		want string // of draws 0.0, 0.1, ... 0.9
	}{
		{configs.TrainConfig{TopP: 1}, "1111111111"},
		{configs.TrainConfig{TopP: 1, Temperature: 1}, "1111333220"},
		{configs.TrainConfig{TopP: 1, Temperature: 1, TopK: 2}, "1111113333"},
		{configs.TrainConfig{TopP: 0.69, Temperature: 1}, "1111113333"},
		{configs.TrainConfig{TopP: 0.71, Temperature: 1}, "1111133322"},
		{configs.TrainConfig{TopP: 0.01, Temperature: 1}, "1111111111"},
	} {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprint(&b, choose(logits, c.how, (float64(i)+0.01)/10))
		}
		if b.String() != c.want {
			t.Errorf("%+v: %s, want %s", c.how, b.String(), c.want)
		}
	}
}
