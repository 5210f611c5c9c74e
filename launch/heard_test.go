package launch

import (
	"strings"
	"testing"
	"time"
)

// TestHeard: who was lost, from the order in which lines end and processes say that they failed; what is written is passed on whole.
func TestHeard(t *testing.T) {
	const silent = "step 1\rtriax: x: rank 2 (p) and rank 9 (q) does not answer: killed\ntriax: y: rank 2 (p) does not answer\n"
	p := process{rank: 1, pid: 4711, host: "a", place: "dp0 pp0 tp1"}
	for name, c := range map[string]struct {
		died, text, later string // "died" at once, "later" after the text
		lost              string
		failed            int
	}{
		"killed, then silent": {"x", silent, "", "rank 1 (dp0 pp0 tp1), process 4711 on a, died", 1},
		"silent, then killed": {"", silent, "x", "rank 2 (dp1 pp0 tp0) did not answer the others", 1},
		"killed":              {"x", "", "", "rank 1 (dp0 pp0 tp1), process 4711 on a, died", 0},
		"failed, then killed": {"", "triax: out of paper\n", "x", "rank 1 (dp0 pp0 tp1), process 4711 on a, died", 1},
		"failed":              {"", "triax: out of paper\n", "", "", 1},
		"nothing":             {"", "a line of no triax: any", "", "", 0},
	} {
		for _, size := range []int{1, 7, 1000} {
			failed := 0
			h := newHeard(func() { failed++ })
			h.called(process{rank: 2, pid: 4712, host: "b", place: "dp1 pp0 tp0"})
			if c.died != "" {
				h.died(p)
			}
			var out strings.Builder
			e := &ear{heard: h, to: &out}
			for text := c.text; text != ""; {
				n := min(size, len(text))
				if k, err := e.Write([]byte(text[:n])); k != n || err != nil {
					t.Fatal(k, err)
				}
				text = text[n:]
			}
			if c.later != "" {
				h.died(p)
			}
			if got := h.Lost(); got != c.lost {
				t.Errorf("%s: %q is lost, want %q", name, got, c.lost)
			}
			if out.String() != c.text || failed != c.failed {
				t.Errorf("%s in pieces of %d: %d failures, passed on %q", name, size, failed, out.String())
			}
		}
	}
}

// TestLine: a line with a farewell is no death, one without is; a stranger who does not know the word is nobody.
func TestLine(t *testing.T) {
	h := newHeard(func() {})
	e, err := openExchange(h)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	name, value, _ := strings.Cut(e.variable(), "=")
	t.Setenv(name, "wrong"+value)
	if l := Call(t.Context(), 0); l != nil {
		t.Error("a wrong word was taken")
	}
	t.Setenv(name, value)
	first, second := Call(t.Context(), 1), Call(t.Context(), 2)
	if first == nil || second == nil {
		t.Fatal("no line")
	}
	first.Place("dp0 pp0 tp1")
	first.Close()
	second.Place("dp1 pp0 tp0")
	second.conn.Close()
	for range 500 {
		if h.Lost() != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := h.Lost(); !strings.HasPrefix(got, "rank 2 (dp1 pp0 tp0), process ") || !strings.HasSuffix(got, ", died") {
		t.Errorf("lost: %q", got)
	}
	t.Setenv(name, "")
	if Call(t.Context(), 0) != nil {
		t.Error("a line to nobody")
	}
}
