package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds a tokenizer file; those of published models have up to 40 MB.
const maxFile = 64 << 20

// Load reads a tokenizer: a tokenizer.json, or a folder with one, or a folder with vocab.json and merges.txt. The end-of-text token is the
// eos_token of tokenizer_config.json or special_tokens_map.json beside it, or eos_token_id of config.json, or else the one of the usual names.
func Load(path string) (*Tokenizer, error) {
	dir := path
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		dir = filepath.Dir(path)
	} else if path = filepath.Join(dir, "tokenizer.json"); !exists(path) {
		if path = filepath.Join(dir, "vocab.json"); !exists(path) {
			return nil, fmt.Errorf("%s: no tokenizer.json, and no vocab.json with merges.txt; other kinds (tokenizer.model) are not read", dir)
		}
	}
	var t *Tokenizer
	if filepath.Base(path) == "vocab.json" {
		t, err = loadPair(path, filepath.Join(dir, "merges.txt"))
	} else {
		var text []byte
		if text, err = read(path); err == nil {
			t, err = Parse(text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.path = path
	if err := t.findEnd(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.findBegin(dir)
	return t, nil
}

// findBegin takes bos_token of tokenizer_config.json, where it is used.
func (t *Tokenizer) findBegin(dir string) {
	var c struct {
		BOS json.RawMessage `json:"bos_token"`
		Add *bool           `json:"add_bos_token"`
	}
	text, err := read(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil || json.Unmarshal(text, &c) != nil || c.Add != nil && !*c.Add {
		return
	}
	if id, ok := t.ID(content(c.BOS)); ok {
		t.begin = []int32{id}
	}
}

// content is the text of a token that is written as itself or as an object.
func content(text json.RawMessage) string {
	var s string
	var o struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(text, &s) != nil && json.Unmarshal(text, &o) == nil {
		s = o.Content
	}
	return s
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("more than %d bytes", maxFile)
	}
	return text, err
}

// loadPair reads the older form: a byte-level vocabulary, and merges a line.
func loadPair(vocab, merges string) (*Tokenizer, error) {
	v, err := read(vocab)
	if err != nil {
		return nil, err
	}
	m, err := read(merges)
	if err != nil {
		return nil, err
	}
	return ParsePair(v, m)
}

// ParsePair reads the texts of vocab.json and merges.txt.
func ParsePair(vocab, merges []byte) (*Tokenizer, error) {
	f := file{Model: model{Type: "BPE"}, PreTokenizer: &step{Type: "ByteLevel"}, Decoder: &step{Type: "ByteLevel"}}
	if err := json.Unmarshal(vocab, &f.Model.Vocab); err != nil {
		return nil, fmt.Errorf("not a vocab.json: %w", err)
	}
	for line := range strings.Lines(string(merges)) {
		if line = strings.TrimRight(line, "\r\n"); line == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		a, b, ok := strings.Cut(line, " ")
		if !ok {
			return nil, fmt.Errorf("merges.txt: %q is not a pair", line)
		}
		f.Model.Merges = append(f.Model.Merges, mergePair{a, b})
	}
	return f.build()
}

// file is a tokenizer.json.
type file struct {
	Added        []added `json:"added_tokens"`
	Normalizer   *step   `json:"normalizer"`
	PreTokenizer *step   `json:"pre_tokenizer"`
	Decoder      *step   `json:"decoder"`
	Model        model   `json:"model"`
}

type added struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type model struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unk          *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []mergePair      `json:"merges"`
}

// mergePair is written "a b" in older files and ["a", "b"] in newer ones.
type mergePair [2]string

func (m *mergePair) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		a, b, ok := strings.Cut(s, " ")
		if !ok {
			return fmt.Errorf("merge %q is not a pair", s)
		}
		*m = mergePair{a, b}
		return nil
	}
	var list []string
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 2 {
		return errors.New("a merge is not a pair")
	}
	*m = mergePair{list[0], list[1]}
	return nil
}

// Parse reads the text of a tokenizer.json. The tokenizer has no end-of-text yet; Load finds it.
func Parse(text []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	return f.build()
}

// findEnd looks for the token that closes a text.
func (t *Tokenizer) findEnd(dir string) error {
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		var c struct {
			EOS json.RawMessage `json:"eos_token"`
		}
		if text, err := read(filepath.Join(dir, name)); err != nil || json.Unmarshal(text, &c) != nil || len(c.EOS) == 0 {
			continue
		}
		s := content(c.EOS)
		if s == "" {
			continue
		}
		id, ok := t.ID(s)
		if !ok {
			return fmt.Errorf("eos_token %q of %s is not in the vocabulary", s, name)
		}
		t.end = id
		return nil
	}
	var c struct {
		EOS any `json:"eos_token_id"`
	}
	if text, err := read(filepath.Join(dir, "config.json")); err == nil && json.Unmarshal(text, &c) == nil {
		if list, ok := c.EOS.([]any); ok && len(list) > 0 {
			c.EOS = list[0]
		}
		if id, ok := c.EOS.(float64); ok && id >= 0 && int(id) < t.Vocab() {
			t.end = int32(id)
			return nil
		}
	}
	for _, s := range []string{"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>"} {
		if id, ok := t.ID(s); ok {
			t.end = id
			return nil
		}
	}
	return errors.New("no end-of-text token: write eos_token into tokenizer_config.json beside it")
}
