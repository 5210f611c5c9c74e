package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly is what this program writes.
func TestCommittedOutputIsReproduced(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2*len(families) {
		t.Fatalf("%d files for %d families", len(files), len(families))
	}
	for name, text := range files {
		have, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, text) {
			t.Errorf("%s differs from what gen writes: run go generate ./cpu", name)
		}
	}
}
