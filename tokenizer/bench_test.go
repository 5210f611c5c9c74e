package tokenizer_test

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkEncode is this module's source, in a chunk as the data room reads it.
func BenchmarkEncode(b *testing.B) {
	var text []byte
	files, err := filepath.Glob(filepath.Join("..", "*", "*.go"))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		t, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, t...)
	}
	text = text[:min(len(text), 1<<20)]
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			tok := open(b, filepath.Join("testdata", kind))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.Encode(nil, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
