package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"triax/checkpoint"
	"triax/configs"
	"triax/cpu"
	"triax/data"
	"triax/tensor"
)

func float64s(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) }

// everyStep is a finished run that has a checkpoint of each step.
func everyStep(t *testing.T) (*configs.Config, *data.Corpus, string) {
	t.Helper()
	cfg := configured(t, "mesh.dp=2", "zero.stage=1", "checkpoint.every=1", "checkpoint.keep=0")
	corpus, folder := letters(t, cfg.Model.Vocab, gridTokens), t.TempDir()
	if _, err := Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Open: float64s}); err != nil {
		t.Fatal(err)
	}
	return cfg, corpus, folder
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestGoBack: a run that goes on from an older checkpoint sets the later ones aside, keeps the newest of its own, and ends as it did.
func TestGoBack(t *testing.T) {
	cfg, corpus, folder := everyStep(t)
	dir := filepath.Join(folder, checkpointFolder)
	last := namesIn(t, dir)
	end, err := checkpoint.Open(filepath.Join(dir, last[len(last)-1]))
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	c, err := checkpoint.Open(filepath.Join(dir, last[1]))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Checkpoint.Keep = 1
	res, err := Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Resume: c, Open: float64s})
	if err != nil || res.Resumed != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	var want []string
	want = append(want, last[len(last)-1])
	for _, name := range last[2:] {
		want = append(want, "superseded-"+name)
	}
	if got := namesIn(t, dir); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	again, err := checkpoint.OpenVerified(context.Background(), filepath.Join(dir, last[len(last)-1]))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !reflect.DeepEqual(again.Entries, end.Entries) {
		t.Error("the end is another one")
	}
	// A checkpoint of another run does not make this folder its own.
	_, err = Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Resume: &checkpoint.Checkpoint{Dir: "/elsewhere/checkpoints/step-000000001", Meta: end.Meta}, Open: float64s})
	if err == nil {
		t.Error("a folder with another run's checkpoints was taken")
	}
}

// TestFilesAreGivenBack: once all ranks have read a checkpoint its files are not held any longer.
func TestFilesAreGivenBack(t *testing.T) {
	const maps = "/proc/self/maps"
	if _, err := os.Stat(maps); err != nil {
		t.Skip(err)
	}
	cfg, corpus, folder := everyStep(t)
	c, err := checkpoint.Open(filepath.Join(folder, checkpointFolder, "step-000000002"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	held := func() bool {
		text, err := os.ReadFile(maps)
		return err != nil || strings.Contains(string(text), c.Dir)
	}
	if !held() {
		t.Fatal("an open checkpoint is not mapped")
	}
	_, err = Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Resume: c, Open: float64s, OnStep: func(p Progress) {
		if held() {
			t.Errorf("step %d: mapped still", p.Step)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOneProcessAtATime: a folder in which a run is under way is refused, untouched, and free again when that has ended.
func TestOneProcessAtATime(t *testing.T) {
	cfg, corpus, _ := everyStep(t)
	folder := t.TempDir()
	tried := false
	_, err := Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Open: float64s, OnStep: func(p Progress) {
		if p.Step != 1 {
			return
		}
		tried = true
		other := *cfg
		other.Train.Seed++
		before, err := os.ReadFile(filepath.Join(folder, "config.toml"))
		if err != nil {
			t.Error(err)
		}
		_, err = Run(context.Background(), &other, Options{Corpus: corpus, Folder: folder, Open: float64s})
		if !errors.As(err, &configs.Problems{}) {
			t.Errorf("%v", err)
		}
		if after, _ := os.ReadFile(filepath.Join(folder, "config.toml")); !reflect.DeepEqual(after, before) {
			t.Error("the folder was written to")
		}
	}})
	if err != nil || !tried {
		t.Fatal(err)
	}
	c, _, err := checkpoint.Latest(context.Background(), filepath.Join(folder, checkpointFolder))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg.Train.Steps += 2
	if _, err := Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Resume: c, Open: float64s}); err != nil {
		t.Error(err)
	}
}

// TestSaveFails: a save that cannot be written ends the run at the end of a step soon after, not at the next save, and says which save, and why.
func TestSaveFails(t *testing.T) {
	cfg := configured(t, "mesh.dp=2", "checkpoint.every=50", "checkpoint.last=false", "train.steps=100000", "optim.warmup=2")
	corpus, folder := letters(t, cfg.Model.Vocab, gridTokens), t.TempDir()
	steps := 0
	_, err := Run(context.Background(), cfg, Options{Corpus: corpus, Folder: folder, Open: float64s, OnStep: func(p Progress) {
		steps = p.Step
		if p.Step == 49 {
			if err := os.WriteFile(filepath.Join(folder, checkpointFolder), nil, 0o644); err != nil {
				t.Error(err)
			}
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "checkpoint of step 50") || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
	if steps < 50 || steps > 20000 {
		t.Errorf("ended after step %d", steps)
	}
}
