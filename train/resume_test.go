package train

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"triax/checkpoint"
	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/nn"
	"triax/tensor"
)

// configured is base and some keys set.
func configured(t *testing.T, set ...string) *configs.Config {
	t.Helper()
	text, err := base().TOML()
	if err != nil {
		t.Fatal(err)
	}
	c, err := configs.Parse(text, set)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// saved runs a configuration until a step, after which it is stopped and saved, and returns the folder.
func saved(t *testing.T, cfg *configs.Config, corpus *data.Corpus, until int) string {
	t.Helper()
	folder := t.TempDir()
	stop := make(chan struct{})
	res, err := Run(context.Background(), cfg, Options{
		Corpus: corpus, Folder: folder, Stop: stop,
		Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64, Poison: true}) },
		OnWorker: func(step int, w *Worker) error {
			if step == until && w.wire.Rank() == 0 {
				close(stop)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Stopped || len(res.Loss) != until {
		t.Fatalf("stopped %v after %d steps, asked to after %d", res.Stopped, len(res.Loss), until)
	}
	return folder
}

// resumed goes on from the newest checkpoint of a folder, and returns what it did and the step it began with.
func resumed(t *testing.T, cfg *configs.Config, corpus *data.Corpus, folder string) (*history, int) {
	t.Helper()
	c, refused, err := checkpoint.Latest(context.Background(), filepath.Join(folder, checkpointFolder))
	if err != nil || c == nil || len(refused) > 0 {
		t.Fatalf("%v, %v, %v", c, refused, err)
	}
	defer c.Close()
	o := newObserver(cfg.Train.Steps)
	res, err := Run(context.Background(), cfg, Options{
		Corpus: corpus, Resume: c, OnWorker: o.attach,
		Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64, Poison: true}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.disagree) > 0 {
		t.Fatalf("%d disagreements between ranks, first: %s", len(o.disagree), o.disagree[0])
	}
	o.h.loss, o.h.norm, o.h.grads = res.Loss, res.GradNorm, o.h.grads[c.Step:]
	return o.h, c.Step
}

// after is the part of a history behind a step.
func (h *history) after(step int) *history {
	return &history{loss: h.loss[step:], norm: h.norm[step:], grads: h.grads[step:], weights: h.weights, states: h.states}
}

// reshards are meshes that save, and meshes that go on. They change every axis and every choice that the layout of memory depends on.
var reshards = []struct{ name, from, to string }{
	{"B82 one stage to two", "mesh.pp=1", "mesh.pp=2"},
	{"stages cut unevenly", "mesh.pp=4 pipeline.layers=[1,2,0,1]", "mesh.pp=2 pipeline.schedule=zb-v"},
	{"interleaved to zero-bubble", "mesh.pp=2 pipeline.schedule=interleaved", "mesh.pp=3 pipeline.schedule=zb-h1"},
	{"B62 padded vocabulary", "mesh.tp=4", "mesh.tp=3"},
	{"tensor to sequence parallel", "mesh.tp=2", "mesh.tp=4 mesh.sequence_parallel=true"},
	{"B81 many buckets, other data axis", "mesh.dp=3 zero.stage=1 zero.bucket_elements=1", "mesh.dp=4 zero.stage=1 zero.bucket_elements=1000"},
	{"B88 two data ranks to one", "mesh.dp=2", "mesh.dp=1 pipeline.microbatches=2"},
	{"ZeRO 0 to 3", "mesh.dp=4 zero.stage=0", "mesh.dp=2 zero.stage=3 zero.overlap=true"},
	{"ZeRO 3 to 2", "mesh.dp=3 zero.stage=3", "mesh.dp=2 mesh.tp=2 zero.stage=2"},
	{"hybrid sharding", "mesh.dp=2 mesh.dp_replicate=2 zero.stage=3", "mesh.dp=3 mesh.dp_replicate=2 zero.stage=2"},
	{"context parallel", "mesh.cp=2 zero.stage=2", "mesh.cp=4 mesh.tp=2"},
	{"B65 dropout", "mesh.dp=2 mesh.tp=2 model.dropout=0.2", "mesh.pp=2 mesh.cp=2 model.dropout=0.2"},
	{"tied tables", "mesh.pp=2 model.tied=true", "mesh.tp=2 mesh.dp=2 zero.stage=3 model.tied=true"},
	{"few key heads", "mesh.tp=4 model.family=llama model.kv_heads=2", "mesh.tp=2 mesh.pp=2 model.family=llama model.kv_heads=2"},
	{"experts", "mesh.ep=2 model.experts=4 model.top_k=2 zero.stage=1", "mesh.ep=4 mesh.tp=2 model.experts=4 model.top_k=2 zero.stage=3"},
	{"adapters", "mesh.tp=2 zero.stage=1 mesh.dp=2 model.lora_rank=3", "mesh.pp=2 zero.stage=3 mesh.dp=3 model.lora_rank=3"},
	{"momentum", "mesh.dp=2 zero.stage=2 optim.rule=sgd", "mesh.tp=3 optim.rule=sgd"},
	{"states in files", "mesh.dp=2 zero.stage=3 zero.offload=disk", "mesh.dp=3 zero.stage=1 zero.offload=disk"},
	{"everything", "mesh.pp=2 mesh.dp=2 mesh.tp=2 zero.stage=3 pipeline.microbatches=3", "mesh.pp=2 mesh.dp=3 mesh.tp=3 zero.stage=2 pipeline.microbatches=2 pipeline.schedule=gpipe"},
}

// TestReshard: a run that is stopped in the middle and goes on under another cut gives the uncut, uninterrupted run's losses, gradients, weights and states.
func TestReshard(t *testing.T) {
	for _, r := range reshards {
		t.Run(r.name, func(t *testing.T) {
			from, to := configured(t, strings.Fields(r.from)...), configured(t, strings.Fields(r.to)...)
			corpus := letters(t, from.Model.Vocab, gridTokens)
			want := uncut(t, to, corpus)
			got, step := resumed(t, to, corpus, saved(t, from, corpus, 2))
			d := compare(got, want.after(step))
			if d.relative > equalTo {
				t.Errorf("relative difference %.3g at %s", d.relative, d.where)
			}
			t.Logf("%-34s %-52s → %-60s %.1g", r.name, r.from, r.to, d.relative)
		})
	}
}

// TestResumeIsBitEqual: on the same mesh a run that was stopped and resumed is the uninterrupted one to the last bit, whatever step it was stopped at.
func TestResumeIsBitEqual(t *testing.T) {
	for _, set := range []string{
		"mesh.dp=1", "mesh.dp=2 zero.stage=1 model.dropout=0.2", "mesh.pp=2 mesh.tp=2 mesh.dp=2 zero.stage=3 zero.overlap=true pipeline.microbatches=3",
		"mesh.dp=2 mesh.dp_replicate=2 zero.stage=2 optim.rule=sgd data.last_batch=wrap", "mesh.cp=2 mesh.dp=3 model.family=llama data.last_batch=drop",
	} {
		cfg := configured(t, strings.Fields(set)...)
		corpus := letters(t, cfg.Model.Vocab, gridTokens)
		whole, _ := cutRun(t, cfg, corpus)
		for until := 1; until <= 2; until++ {
			got, step := resumed(t, cfg, corpus, saved(t, cfg, corpus, until))
			if want := whole.after(step); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, stopped after %d: %s", set, step, compare(got, want).where)
			}
		}
	}
}

// TestSaveIsConsistent: a checkpoint that is written while training goes on holds the state of its step, not a later one's.
func TestSaveIsConsistent(t *testing.T) {
	cfg := configured(t, "mesh.dp=2", "zero.stage=2", "checkpoint.every=1", "checkpoint.keep=0")
	corpus := letters(t, cfg.Model.Vocab, gridTokens)
	folder := t.TempDir()
	weights := map[int]values{}
	_, err := Run(context.Background(), cfg, Options{
		Corpus: corpus, Folder: folder, Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) },
		OnWorker: func(step int, w *Worker) error {
			if w.wire.Rank() == 0 {
				weights[step] = values{}
				for _, st := range w.stages {
					for _, l := range st.layers {
						for _, p := range l.Params() {
							weights[step][p.Name] = download(w.dev, p.Data)
						}
					}
				}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := checkpoint.List(filepath.Join(folder, checkpointFolder))
	if err != nil || len(list) != cfg.Train.Steps {
		t.Fatalf("%v %v", list, err)
	}
	for _, path := range list {
		c, err := checkpoint.OpenVerified(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range weights[c.Step] {
			got := make([]float64, len(want))
			p := &nn.Param{Name: name, Shape: c.Shape(name)}
			if err := c.Source(checkpoint.Weight).Values(got, p, 0); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("step %d: %s is not what it was", c.Step, name)
			}
		}
		c.Close()
	}
}

// TestResumeRefused: what would go on with other data or another model is refused, all of it at once.
func TestResumeRefused(t *testing.T) {
	cfg := configured(t, "mesh.dp=2")
	corpus := letters(t, cfg.Model.Vocab, gridTokens)
	folder := saved(t, cfg, corpus, 2)
	c, _, err := checkpoint.Latest(context.Background(), filepath.Join(folder, checkpointFolder))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	try := func(corpus *data.Corpus, set ...string) error {
		_, err := Run(context.Background(), configured(t, set...), Options{Corpus: corpus, Resume: c, Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) }})
		return err
	}
	for _, x := range []struct {
		err  error
		want []string
	}{
		{try(letters(t, 17, 999), "train.seed=7", "train.batch=24", "train.steps=2"), []string{"train.seed = 7", "train.batch = 24", "data.source", "train.steps = 2"}},
		{try(corpus, "model.width=48", "model.layers=5"), []string{"model.width = 48", "use 24", "model.layers = 5", "use 4"}},
		{try(corpus, "optim.rule=sgd"), []string{"optim.rule"}},
		{try(corpus, "model.family=llama"), []string{"model.family = llama"}},
		// What no shape shows.
		{try(corpus, "model.heads=2", "model.eps=1e-4"), []string{"model.heads = 2", "model.head_dim", "model.eps = 0.0001"}},
		{try(corpus, "train.device=float32"), []string{"train.device = float32", "would be rounded"}},
	} {
		for _, w := range x.want {
			if x.err == nil || !strings.Contains(x.err.Error(), w) {
				t.Errorf("%v: want %q", x.err, w)
			}
		}
	}
	// A folder with checkpoints is not written over.
	if _, err := Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder}); err == nil || !strings.Contains(err.Error(), "--resume latest") {
		t.Errorf("%v", err)
	}
}

// TestMinutes: time, too, asks for saves, and all ranks save the same steps.
func TestMinutes(t *testing.T) {
	cfg := configured(t, "mesh.dp=3", "checkpoint.minutes=1e-9", "checkpoint.last=false", "checkpoint.keep=2", "checkpoint.synchronous=true")
	folder := t.TempDir()
	res, err := Run(context.Background(), cfg, Options{Corpus: letters(t, 17, gridTokens), Folder: folder, Open: func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) }})
	if err != nil {
		t.Fatal(err)
	}
	list, err := checkpoint.List(filepath.Join(folder, checkpointFolder))
	if err != nil || len(res.Saves) != 4 || len(list) != 2 {
		t.Errorf("%d saves, %d kept, %v", len(res.Saves), len(list), err)
	}
	for _, s := range res.Saves {
		if s.Bytes < 1000 || s.PauseMS <= 0 || s.WriteMS <= 0 {
			t.Errorf("%+v", s)
		}
	}

}
