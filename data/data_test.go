package data

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func corpusOf(t testing.TB, heldOut float64, docs ...string) *Corpus {
	t.Helper()
	c, err := Of(Bytes{}, heldOut, docs...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestB91LastBatch: an epoch of 10 samples in batches of 6 on 3 data ranks with microbatches of 2: under every policy all ranks get the same number of
// microbatches of the same size, and every target of the epoch counts once where the policy keeps it.
func TestB91LastBatch(t *testing.T) {
	const seq, batch = 4, 6
	text := strings.Repeat("x", 39) // 40 tokens with the end: 39 targets, 10 windows
	c := corpusOf(t, 0, text)
	for _, policy := range LastBatches {
		epoch := 0 // valid tokens of the first two steps
		s, err := c.Train(seq, batch, 3, 7, policy)
		if err != nil {
			t.Fatal(err)
		}
		if s.Samples() != 10 {
			t.Fatalf("%d samples", s.Samples())
		}
		for step := 1; step <= 3; step++ {
			b := s.Global(step)
			valid, n := 0, 0
			for rank := range 3 {
				m := b.Micro(rank, 3, 0, 1)
				if len(m) != 2 {
					t.Errorf("%s step %d: rank %d gets %d samples", policy, step, rank, len(m))
				}
				for _, x := range m {
					n++
					for _, target := range x.Targets {
						if target >= 0 {
							valid++
						}
					}
				}
			}
			if n != batch || valid != b.Valid {
				t.Errorf("%s step %d: %d samples, %d valid tokens, the batch says %d", policy, step, n, valid, b.Valid)
			}
			if step <= 2 {
				epoch += b.Valid
			}
			// One window has 3 targets; only padding makes a batch shorter than that.
			if policy != Pad && b.Valid != 24 && b.Valid != 23 {
				t.Errorf("%s step %d: %d valid tokens", policy, step, b.Valid)
			}
		}
		if policy == Pad && epoch != 39 {
			t.Errorf("pad: %d valid tokens in an epoch, want 39", epoch)
		}
	}
}

// TestEpochs: every window occurs once an epoch, epochs differ in order, and the order is a function of seed and step alone.
func TestEpochs(t *testing.T) {
	c := corpusOf(t, 0, strings.Repeat("abcdefg", 50))
	s, err := c.Train(8, 4, 1, 3, Pad)
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]bool{}
	for epoch := range 3 {
		seen := map[int]int{}
		order := ""
		for step := 1; step <= s.Steps(); step++ {
			for _, x := range s.Global(epoch*s.Steps() + step).Samples {
				if x.Window >= 0 {
					seen[x.Window]++
					order += fmt.Sprint(x.Window, " ")
				}
			}
		}
		for w := range s.Samples() {
			if seen[w] != 1 {
				t.Errorf("epoch %d: window %d occurs %d times", epoch, w, seen[w])
			}
		}
		orders[order] = true
	}
	if len(orders) != 3 {
		t.Errorf("%d different orders in 3 epochs", len(orders))
	}
	again, err := c.Train(8, 4, 1, 3, Pad)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(again.Global(9)) != fmt.Sprint(s.Global(9)) {
		t.Error("batch 9 depends on what was read before")
	}
	other, err := c.Train(8, 4, 1, 4, Pad)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(other.Global(1)) == fmt.Sprint(s.Global(1)) {
		t.Error("another seed gives the same batch")
	}
}

// TestHeldOut: no held-out token is trained on, and evaluation sees its samples in order.
func TestHeldOut(t *testing.T) {
	c := corpusOf(t, 0.25, strings.Repeat("t", 60)+strings.Repeat("h", 40))
	train, held := c.Tokens()
	if train+held != 101 || held != 25 {
		t.Fatalf("%d and %d tokens", train, held)
	}
	s, err := c.HeldOut(5, 2)
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= s.Steps(); step++ {
		for _, x := range s.Global(step).Samples {
			for _, tok := range x.Tokens {
				if tok == 't' {
					t.Error("a training token is evaluated")
				}
			}
		}
	}
}

func TestPermutation(t *testing.T) {
	for n := 1; n <= 130; n++ {
		p := NewPermutation(n, uint64(n)*77)
		seen := make([]bool, n)
		for i := range n {
			j := p.At(i)
			if j < 0 || j >= n || seen[j] {
				t.Fatalf("n %d: %d goes to %d", n, i, j)
			}
			seen[j] = true
		}
	}
}

// TestSources: files, directories and globs, each file once; binaries and empty files in directories left out; the same order wherever the tree lies.
func TestSources(t *testing.T) {
	write := func(root string) {
		for name, text := range map[string]string{"a.txt": "alpha", "sub/b.txt": "beta", "sub/bin": "x\x00y", "empty.txt": ""} {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var sums []uint64
	for range 2 {
		root := t.TempDir()
		write(root)
		c, err := Open(Config{Source: []string{root, filepath.Join(root, "*.txt"), filepath.Join(root, "a.txt")}, Tokenizer: "bytes"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Documents != 2 || c.Binary != 1 || c.Bytes != 9 {
			t.Errorf("%v", c)
		}
		sums = append(sums, c.Sum())
	}
	if sums[0] != sums[1] {
		t.Error("the order depends on where the tree lies")
	}
}

// TestBadSources: everything wrong at once, and nothing read as if it were there.
func TestBadSources(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{Source: []string{filepath.Join(root, "absent"), filepath.Join(root, "*.nothing")}, Tokenizer: "bytes"})
	if err == nil || !strings.Contains(err.Error(), "absent") || !strings.Contains(err.Error(), "*.nothing") {
		t.Errorf("got %v", err)
	}
	if _, err = Open(Config{Source: []string{filepath.Join(root, "empty")}, Tokenizer: "bytes"}); err == nil || !strings.Contains(err.Error(), "data.source") {
		t.Errorf("empty: %v", err)
	}
	if _, err = Open(Config{Tokenizer: "words"}); err == nil || !strings.Contains(err.Error(), "data.tokenizer") {
		t.Errorf("tokenizer: %v", err)
	}
}

// TestB94FewerSamplesThanRanks: a data rank that would have nothing to read is an error before the first step; one document is shared out by samples.
func TestB94FewerSamplesThanRanks(t *testing.T) {
	c := corpusOf(t, 0, "ab")
	if _, err := c.Train(4, 2, 3, 1, Pad); err == nil || !strings.Contains(err.Error(), "fewer than the 3 data-parallel ranks") {
		t.Errorf("three ranks for one sample: %v", err)
	}
	if _, err := c.Train(1, 2, 2, 1, Pad); err != nil {
		t.Errorf("two ranks for two samples of one document: %v", err)
	}
}

// TestTokenizers: text goes there and back.
func TestTokenizers(t *testing.T) {
	for _, name := range Tokenizers {
		tok, err := NewTokenizer(name)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Vocab() != VocabOf(name) {
			t.Errorf("%s: vocabulary %d and %d", name, tok.Vocab(), VocabOf(name))
		}
		for _, text := range []string{"", "func main() {\n\tprintln(\"héllo, 世界\")\n}\n", "  spaces   and\ttabs"} {
			ids, err := tok.Encode(nil, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Decode(ids); got != text {
				t.Errorf("%s: %q comes back as %q", name, text, got)
			}
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Vocab() || id == tok.End() {
					t.Errorf("%s: id %d", name, id)
				}
			}
		}
	}
}

// FuzzBytes: any bytes make a corpus whose every window is right.
func FuzzBytes(f *testing.F) {
	f.Add([]byte("hello"), uint8(3))
	f.Add([]byte{0, 255, 10}, uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, seq uint8) {
		if len(text) == 0 || len(text) > 1<<12 {
			return
		}
		c, err := Of(Bytes{}, 0, string(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Train(int(seq)%32+1, 3, 1, 1, Pad)
		if err != nil {
			t.Fatal(err)
		}
		targets := 0
		for step := 1; step <= s.Steps(); step++ {
			targets += s.Global(step).Valid
		}
		if targets != len(text) { // every token but the first is a target, the end among them
			t.Errorf("%d targets of %d bytes", targets, len(text))
		}
	})
}

func ExampleSet() {
	c, _ := Of(Bytes{}, 0, "hello world")
	s, _ := c.Train(4, 2, 1, 1, Pad)
	fmt.Println(s)
	b := s.Global(1)
	for _, x := range b.Samples {
		fmt.Printf("%q → %d valid targets\n", c.Tokenizer.Decode(x.Tokens), x.Valid)
	}
	// Output:
	// 3 samples of 4 tokens, 2 steps an epoch
	// "rld<|endoftext|>" → 3 valid targets
	// "hell" → 4 valid targets
}

// TestPublishedTokenizer: a text is read through the tokenizer.json of a published model, in whole documents, and its ids are that file's.
func TestPublishedTokenizer(t *testing.T) {
	path := "../tokenizer/testdata/llama2"
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte("The quick brown fox 🙂"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Config{Source: []string{text}, Tokenizer: path})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := NewTokenizer(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tok.Encode(nil, []byte("The quick brown fox 🙂"))
	if err != nil {
		t.Fatal(err)
	}
	if want = append(want, tok.End()); !slices.Equal(c.tokens, want) {
		t.Errorf("tokens %v, want %v", c.tokens, want)
	}
	if back := tok.Decode(want[:len(want)-1]); back != "The quick brown fox 🙂" {
		t.Errorf("back %q", back)
	}
	if n := VocabOf(path); n != tok.Vocab() || n != 902 {
		t.Errorf("vocabulary %d and %d", n, tok.Vocab())
	}
	if _, err := Open(Config{Source: []string{text}, Tokenizer: "./nowhere/tokenizer.json"}); err == nil || !strings.Contains(err.Error(), "data.tokenizer") {
		t.Errorf("a file that is not there: %v", err)
	}
}
