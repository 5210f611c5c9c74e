package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated: the committed assembly is what the generator writes.
func TestGenerated(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the generator writes; run go generate ./cpu", name)
		}
	}
}
