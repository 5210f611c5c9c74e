package tokenizer_test

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"triax/tensor/alloctest"
	"triax/tokenizer"
)

// FuzzTokenizerJSON: whatever a file says, it is refused or works, within memory that grows with its size.
func FuzzTokenizerJSON(f *testing.F) {
	for _, kind := range kinds {
		text, err := os.ReadFile(filepath.Join("testdata", kind, "tokenizer.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, s := range []string{
		`{}`, `{"model":{"type":"BPE","vocab":{"a":16777215},"merges":[]}}`, `{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`,
		`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"],"unk_token":"a"},"pre_tokenizer":{"type":"Metaspace"},"added_tokens":[{"id":3,"content":"ab"}]}`,
		`{"model":{"type":"BPE","vocab":{"a":0}},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a*)*$|\\s+(?!\\S)|\\s+"},"behavior":"Isolated"}}`,
		`{"model":{"type":"BPE","vocab":{"a":0}},"decoder":{"type":"Strip","content":"a","start":1000000000,"stop":-1}}`,
		`{"model":{"type":"BPE","vocab":{"a":0}},"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaa"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var tok *tokenizer.Tokenizer
		var err error
		alloctest.Linear(t, len(text), func() { tok, err = tokenizer.Parse(text) })
		if err != nil {
			return
		}
		ids, err := tok.Encode(nil, []byte("It's  12 naïve 🙂\n <tool>ab</tool> ▁x"))
		if err != nil {
			return
		}
		for _, id := range ids {
			if id < 0 || int(id) >= tok.Vocab() {
				t.Fatalf("id %d of %d", id, tok.Vocab())
			}
		}
		tok.Decode(append(ids, -1, 1<<30))
	})
}

// FuzzText: any bytes are tokenised, and a byte-level tokenizer gives them back.
func FuzzText(f *testing.F) {
	var toks []*tokenizer.Tokenizer
	for _, kind := range kinds {
		toks = append(toks, open(f, filepath.Join("testdata", kind)))
		for _, s := range golden(f, kind) {
			f.Add([]byte(s.Text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, tok := range toks {
			ids, err := tok.Encode(nil, text)
			if err != nil {
				t.Fatalf("%s: %v", kinds[i], err)
			}
			back := tok.Decode(ids)
			if byteLevel := i < 2; byteLevel && utf8.Valid(text) && back != string(text) {
				t.Fatalf("%s: %q came back as %q", kinds[i], text, back)
			}
		}
	})
}

// FuzzPair: vocab.json and merges.txt.
func FuzzPair(f *testing.F) {
	f.Add([]byte(`{"a":0,"b":1,"ab":2}`), []byte("#version: 0.2\na b\n"))
	f.Add([]byte(`{"a":0}`), []byte("a\n"))
	f.Fuzz(func(t *testing.T, vocab, merges []byte) {
		if tok, err := tokenizer.ParsePair(vocab, merges); err == nil {
			if ids, err := tok.Encode(nil, []byte("abab ab")); err == nil {
				tok.Decode(ids)
			}
		}
	})
}
