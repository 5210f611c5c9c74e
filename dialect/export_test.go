package dialect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/configs"
)

// chosen are layouts as a search may end with, on Llama 3 8B.
var chosen = []struct{ name, text string }{
	{"3d", "[mesh]\ntp = 4\npp = 4\ndp = 4\nsequence_parallel = true\n[pipeline]\nschedule = \"interleaved\"\nchunks = 2\nmicrobatches = 32\n[zero]\nstage = 1\noverlap = true\n"},
	{"hybrid-sharding", "[mesh]\ndp = 8\ndp_replicate = 4\n[zero]\nstage = 3\noverlap = true\n[model]\nrecompute = \"full\"\n"},
	{"zero-bubble", "[mesh]\npp = 8\ndp = 4\n[pipeline]\nschedule = \"zb-v\"\nchunks = 2\nmicrobatches = 32\n[zero]\nstage = 3\n"},
	{"uneven", "[mesh]\npp = 4\ndp = 2\n[pipeline]\nschedule = \"1f1b\"\nmicrobatches = 16\nlayers = [7, 9, 9, 7]\n"},
	{"half-the-memory", "[mesh]\npp = 4\ndp = 2\n[pipeline]\nschedule = \"v-half\"\nchunks = 2\nmicrobatches = 16\n"},
	{"3d-fsdp", "[mesh]\ntp = 8\npp = 2\ndp = 4\nsequence_parallel = true\n[pipeline]\nschedule = \"interleaved\"\nchunks = 2\nmicrobatches = 32\n[zero]\nstage = 3\n"},
	{"tensor", "[mesh]\ntp = 4\ndp = 4\n[zero]\nstage = 1\n"},
	{"context", "[mesh]\ncp = 4\ndp = 2\n[zero]\nstage = 1\n"},
}

// TestExport: the same layouts in every system's words, or what that system cannot do.
func TestExport(t *testing.T) {
	var b strings.Builder
	for _, c := range chosen {
		config := parse(t, c.text)
		for _, to := range Systems {
			text, err := Export(to, config)
			if err != nil {
				text = "refused: " + err.Error() + "\n"
			}
			fmt.Fprintf(&b, "-- %s, %s --\n%s", c.name, to, text)
		}
	}
	path := filepath.Join("testdata", "export.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func parse(t *testing.T, text string) *configs.Config {
	t.Helper()
	set := []string{"model.preset=llama3-8b", "train.batch=128", "train.steps=1000", "cluster.gpus_per_node=8", "cluster.precision=bf16"}
	c, err := configs.Parse([]byte(text), set)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
