package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"triax/tensor/alloctest"
)

// examples opens a JSONL file of these lines.
func examples(t testing.TB, c Config, lines ...string) (*Corpus, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "examples.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Source, c.Format, c.Tokenizer = []string{path}, JSONL, "bytes"
	return Open(c)
}

// TestPack draws one packed sample: prompts are masked, documents stay apart, and the end of each is learned.
func TestPack(t *testing.T) {
	c, err := examples(t, Config{}, `{"prompt": "2+2=", "completion": "4"}`, "", `{"text": "abc"}`, `{"prompt":"", "completion":"xy", "more": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Train(12, 1, 1, 1, Pad)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Global(1).Samples[0]
	show := func(ids []int32) string {
		var b strings.Builder
		for _, id := range ids {
			switch {
			case id == Masked:
				b.WriteByte('.')
			case id == Bytes{}.End():
				b.WriteByte('$')
			default:
				b.WriteByte(byte(id))
			}
		}
		return b.String()
	}
	got := fmt.Sprintf("%s\n%s\n%v, %d valid, %d samples", show(x.Tokens), show(x.Targets), x.Starts, x.Valid, s.Samples())
	want := "2+2=4abcxy$$\n...4$bc$y$..\n[0 5 8 10], 7 valid, 1 samples"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPackAll: every example stands once, whole, in some sample, none overlaps another, and the room lost is small.
func TestPackAll(t *testing.T) {
	var lines []string
	x := uint32(1)
	total := 0
	for i := range 500 {
		x = x*1664525 + 1013904223
		n := 1 + int(x>>16)%60
		lines = append(lines, fmt.Sprintf(`{"prompt": "%s", "completion": "%d"}`, strings.Repeat("p", n), i))
	}
	c, err := examples(t, Config{}, lines...)
	if err != nil {
		t.Fatal(err)
	}
	const seq = 64
	s, err := c.Train(seq, 4, 1, 3, Pad)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for step := 1; step <= s.Steps(); step++ {
		b := s.Global(step)
		valid := 0
		for _, x := range b.Samples {
			for i, id := range x.Targets {
				if id != Masked {
					valid++
				}
				if i > 0 && slices.Contains(x.Starts, i) && x.Targets[i-1] != Masked && x.Targets[i-1] != (Bytes{}).End() {
					t.Fatalf("window %d: token %d predicts across a border", x.Window, i-1)
				}
			}
			for d, at := range x.Starts {
				to := seq
				if d+1 < len(x.Starts) {
					to = x.Starts[d+1]
				}
				var answer []int32
				for _, id := range x.Targets[at:to] {
					if id != Masked && id != (Bytes{}).End() {
						answer = append(answer, id)
					}
				}
				if len(answer) > 0 {
					seen[(Bytes{}).Decode(answer)]++
					total += to - at
				}
			}
		}
		if valid != b.Valid {
			t.Errorf("step %d: %d valid tokens, the batch says %d", step, valid, b.Valid)
		}
	}
	for i := range 500 {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("example %d stands %d times", i, seen[fmt.Sprint(i)])
		}
	}
	if lost := 1 - float64(total)/float64(s.Samples()*seq); lost > 0.02 {
		t.Errorf("%.1f%% of the room is padding", 100*lost)
	}
}

// TestApart: in windows of text too, nothing predicts or is seen across a document's end.
func TestApart(t *testing.T) {
	c := corpusOf(t, 0, "ab", "cde", "f") // ab$cde$f$
	c.config.Documents = Apart
	s, err := c.Train(8, 1, 1, 1, Pad)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Global(1).Samples[0]
	if want := []int{0, 3, 7}; !slices.Equal(x.Starts, want) {
		t.Errorf("documents begin at %v, want %v", x.Starts, want)
	}
	if x.Targets[2] != Masked || x.Targets[6] != Masked || x.Valid != 6 {
		t.Errorf("targets %v, %d valid", x.Targets, x.Valid)
	}
	if c.tokens[3] == Masked {
		t.Error("masking has changed the corpus")
	}
}

// TestLong: an example longer than a sample is refused, cut or left out, as asked.
func TestLong(t *testing.T) {
	lines := []string{`{"prompt": "0123456789", "completion": "abc"}`, `{"text": "short"}`, `{"prompt": "0123", "completion": "abcdefg"}`}
	for _, c := range []struct {
		long  string
		packs int
		valid int
	}{{Cut, 2, 5 + 5}, {Drop, 1, 5}} {
		corpus, err := examples(t, Config{Long: c.long}, lines...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := corpus.Train(8, 2, 1, 1, Pad)
		if err != nil {
			t.Fatal(err)
		}
		if b := s.Global(1); s.Samples() != c.packs || b.Valid != c.valid {
			t.Errorf("%s: %d samples, %d valid tokens", c.long, s.Samples(), b.Valid)
		}
	}
	corpus, err := examples(t, Config{Long: Refuse}, lines...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := corpus.Train(8, 1, 1, 1, Pad); err == nil || !strings.Contains(err.Error(), "2 of 3 examples") || !strings.Contains(err.Error(), "use model.sequence = 13") {
		t.Errorf("%v", err)
	}
}

// TestBadLines: everything wrong is said at once, by line.
func TestBadLines(t *testing.T) {
	_, err := examples(t, Config{}, `{"text": "ok"}`, `{"prompt": "a"}`, `nonsense`, `{"prompt": "a", "completion": ""}`, `{"text": "a", "prompt": "b", "completion": "c"}`, `{"text": 3}`)
	var ps Problems
	if !errors.As(err, &ps) {
		t.Fatal(err)
	}
	for _, want := range []string{"line 2: want {", "line 3: not JSON", "line 4: nothing to learn", `line 5: "text" beside`, "line 6: not JSON"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// TestHeldOutExamples: examples are held out whole, and none is in both parts.
func TestHeldOutExamples(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`{"text": "example %02d"}`, i))
	}
	c, err := examples(t, Config{HeldOut: 0.1}, lines...)
	if err != nil {
		t.Fatal(err)
	}
	train, held := c.Tokens()
	if train != 90*11 || held != 10*11 {
		t.Errorf("%d tokens for training, %d held out", train, held)
	}
	set, err := c.HeldOut(22, 5)
	if err != nil || set.Samples() != 5 {
		t.Errorf("%v, %v", set, err)
	}
	if c.examples[99].lo == 99*11 && c.examples[98].lo == 98*11 {
		t.Error("the held-out examples are the last of the file")
	}
}

// FuzzJSONL: any bytes are read or refused; what is read gives batches whose valid targets are ids.
func FuzzJSONL(f *testing.F) {
	f.Add([]byte("{\"text\": \"abc\"}\n{\"prompt\": \"a\", \"completion\": \"b\"}\r\n"), uint8(4))
	f.Add([]byte("{\"text\": \"\\ud800\"}\n\n\n[1]"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, seq uint8) {
		c := &Corpus{Tokenizer: Bytes{}, config: Config{Format: JSONL, Long: Cut}.Resolved()}
		var err error
		alloctest.Linear(t, len(text), func() { err = c.lines(strings.NewReader(string(text)), 1<<20) })
		if err != nil || len(c.examples) == 0 {
			return
		}
		if err := c.splitExamples(0); err != nil {
			t.Fatal(err)
		}
		s, err := c.Train(1+int(seq), 2, 1, 1, Pad)
		if err != nil {
			return
		}
		for step := 1; step <= s.Steps(); step++ {
			valid := 0
			for _, x := range s.Global(step).Samples {
				for i, id := range x.Targets {
					if id != Masked {
						valid++
					}
					if id >= 257 || id < Masked || x.Tokens[i] < 0 || x.Tokens[i] >= 257 {
						t.Fatalf("id %d", id)
					}
				}
			}
			if b := s.Global(step); b.Valid != valid {
				t.Fatalf("%d valid, the batch says %d", valid, b.Valid)
			}
		}
	})
}
