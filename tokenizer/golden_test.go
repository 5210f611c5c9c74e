package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"triax/tokenizer"
)

// kinds are the folders that tools/golden/tokens.py makes.
var kinds = []string{"gpt2", "llama3", "qwen2", "llama2", "mistral"}

type sample struct {
	Text, Back string
	IDs        []int32
}

func golden(t testing.TB, kind string) (out []sample) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", kind, "golden.json"))
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t testing.TB, path string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGolden: ids and text are those of Hugging Face's tokenizers, token by token.
func TestGolden(t *testing.T) {
	for _, kind := range kinds {
		tok := open(t, filepath.Join("testdata", kind))
		list := golden(t, kind)
		for range 2 { // the second time from what is kept
			for _, s := range list {
				ids, err := tok.Encode(nil, []byte(s.Text))
				if err != nil {
					t.Errorf("%s: %q: %v", kind, s.Text, err)
				} else if !slices.Equal(ids, s.IDs) {
					t.Errorf("%s: %q: ids %v, want %v", kind, s.Text, ids, s.IDs)
				} else if back := tok.Decode(ids); back != s.Back {
					t.Errorf("%s: %q: back %q, want %q", kind, s.Text, back, s.Back)
				}
			}
		}
		t.Logf("%s: %d texts", tok, len(list))
	}
}

// TestPair: vocab.json with merges.txt says the same as tokenizer.json, but for added tokens.
func TestPair(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"vocab.json", "merges.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", "gpt2", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pair, whole := open(t, dir), open(t, filepath.Join("testdata", "gpt2"))
	if pair.End() != whole.End() {
		t.Errorf("end %d, want %d", pair.End(), whole.End())
	}
	for _, s := range golden(t, "gpt2") {
		if slices.ContainsFunc(s.IDs, func(id int32) bool { return int(id) >= pair.Vocab() }) {
			continue // has an added token
		}
		if ids, err := pair.Encode(nil, []byte(s.Text)); err != nil || !slices.Equal(ids, s.IDs) {
			t.Errorf("%q: %v, %v, want %v", s.Text, ids, err, s.IDs)
		}
	}
}

// TestMany compares with the ids of very many texts, where tools/golden/compare_tokens.py has written them into $TRIAX_TOKENS.
func TestMany(t *testing.T) {
	dir := os.Getenv("TRIAX_TOKENS")
	if dir == "" {
		t.Skip("TRIAX_TOKENS is not set")
	}
	read := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var texts []string
	read("texts.json", &texts)
	for _, kind := range kinds {
		var want [][]int32
		read(kind+".json", &want)
		tok, wrong := open(t, filepath.Join("testdata", kind)), 0
		for i, text := range texts {
			if ids, err := tok.Encode(nil, []byte(text)); err != nil || !slices.Equal(ids, want[i]) {
				wrong++
				if wrong <= 5 {
					t.Errorf("%s: text %d, %.60q: %v", kind, i, text, err)
				}
			}
		}
		t.Logf("%s: %d of %d texts differ", kind, wrong, len(texts))
	}
}
