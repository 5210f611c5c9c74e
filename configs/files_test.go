package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFiles: every configuration here loads, makes its schedule, and says in its first line what it is for.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("*.toml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d configurations, %v", len(files), err)
	}
	for _, f := range files {
		var set []string
		if strings.HasPrefix(f, "finetune-") { // what they start from is the user's, and never made up
			if _, err := Load(f, nil); err == nil || !strings.Contains(err.Error(), `model.from = "models/base"`) {
				t.Errorf("%s without a model: %v", f, err)
			}
			set = []string{"model.from=../hf/testdata/llama", "model.sequence=16"}
		}
		cfg, err := Load(f, set)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if _, err := Schedule(cfg); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not begin with a comment", f)
		}
	}
}
