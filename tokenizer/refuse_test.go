package tokenizer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/tokenizer"
)

// TestRefused: a step that is not known here, or a pattern that would cut otherwise than its author's program, is refused by name.
func TestRefused(t *testing.T) {
	file := func(field, value string) string {
		model := `{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}`
		if field == "model" {
			model = value
			return fmt.Sprintf(`{"model": %s}`, model)
		}
		return fmt.Sprintf(`{"model": %s, %q: %s}`, model, field, value)
	}
	split := func(regex string) string {
		return fmt.Sprintf(`{"type": "Split", "pattern": {"Regex": %q}, "behavior": "Isolated"}`, regex)
	}
	for _, c := range []struct{ field, value, want string }{
		{"model", `{"type": "Unigram", "vocab": {}}`, `model.type "Unigram"`},
		{"model", `{"type": "WordPiece", "vocab": {}}`, `"WordPiece"`},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}`, "model.merges[0]"},
		{"model", `{"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}`, "model.merges[0]"},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "u"}`, "model.unk_token"},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "byte_fallback": true}`, "<0x00>"},
		{"model", `{"type": "BPE", "vocab": {"a": 9000000}, "merges": []}`, "id 9000000"},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}`, "model.dropout"},
		{"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"}`, "end_of_word_suffix"},
		{"normalizer", `{"type": "Lowercase"}`, `"Lowercase"`},
		{"normalizer", `{"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"}`, "type Replace"},
		{"pre_tokenizer", `{"type": "BertPreTokenizer"}`, `"BertPreTokenizer"`},
		{"pre_tokenizer", `{"type": "Split", "pattern": {"String": "a"}, "behavior": "MergedWithNext"}`, "MergedWithNext"},
		{"pre_tokenizer", split(`a(?!b)`), "invalid or unsupported Perl syntax"},
		{"pre_tokenizer", split(`[^\S\n]+`), `\S here`},
		{"pre_tokenizer", split(`\bword\b`), `\b here`},
		{"pre_tokenizer", split(`[a-z&&[^b]]`), "classes inside classes"},
		{"pre_tokenizer", split(`\p{L}++`), "nested repetition"},
		{"pre_tokenizer", split(`(a)b`), "groups that capture"},
		{"decoder", `{"type": "CTC"}`, `"CTC"`},
		{"added_tokens", `[{"id": 3, "content": "x", "lstrip": true}]`, "lstrip"},
		{"added_tokens", `[{"id": 3, "content": ""}]`, "has no text"},
	} {
		if _, err := tokenizer.Parse([]byte(file(c.field, c.value))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %s: %v, want %q", c.field, c.value, err, c.want)
		}
	}
	tok, err := tokenizer.Parse([]byte(file("pre_tokenizer", `null`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode(nil, []byte("abc")); err == nil || !strings.Contains(err.Error(), `no "c"`) {
		t.Errorf("a character that nothing stands for: %v", err)
	}
}

// TestEnds: the end-of-text token is the one that the files beside the vocabulary name.
func TestEnds(t *testing.T) {
	text, err := os.ReadFile("testdata/llama2/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, beside, want string
		begin              bool
	}{
		{"", "", "</s>", false},
		{"tokenizer_config.json", `{"eos_token": "<tool>", "bos_token": "<s>"}`, "<tool>", true},
		{"tokenizer_config.json", `{"eos_token": {"content": "<s>"}, "bos_token": "<s>", "add_bos_token": false}`, "<s>", false},
		{"special_tokens_map.json", `{"eos_token": "<unk>"}`, "<unk>", false},
		{"config.json", `{"eos_token_id": [1, 2]}`, "<s>", false},
		{"tokenizer_config.json", `{"eos_token": "nowhere"}`, "", false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if c.name != "" {
			if err := os.WriteFile(filepath.Join(dir, c.name), []byte(c.beside), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tok, err := tokenizer.Load(dir)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), `eos_token "nowhere"`) {
				t.Errorf("%s: %v", c.beside, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.beside, err)
			continue
		}
		if id, ok := tok.ID(c.want); !ok || id != tok.End() || len(tok.Begin()) > 0 != c.begin {
			t.Errorf("%s: ends with %d, begins with %v, want %q, %v", c.beside, tok.End(), tok.Begin(), c.want, c.begin)
		}
	}
	if _, err := tokenizer.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no tokenizer.json") {
		t.Errorf("an empty folder: %v", err)
	}
}
