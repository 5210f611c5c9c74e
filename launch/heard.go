package launch

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// process is who a process said it is.
type process struct {
	rank, pid   int
	host, place string
}

func (p process) String() string {
	if p.place == "" {
		return fmt.Sprint("rank ", p.rank)
	}
	return fmt.Sprintf("rank %d (%s)", p.rank, p.place)
}

// Heard is what is known of a job's end: whose line ended, and what the others said of silent ranks.
type Heard struct {
	mu     sync.Mutex
	ranks  map[int]process
	dead   *process    // the first whose line ended without a farewell
	before bool        // it did before any process said that it failed
	silent map[int]int // by rank: how often it was found silent
	said   bool        // a process has said that it failed
	failed func()      // called then
}

func newHeard(failed func()) *Heard {
	return &Heard{ranks: map[int]process{}, silent: map[int]int{}, failed: failed}
}

func (h *Heard) called(p process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ranks[p.rank] = p
}

func (h *Heard) died(p process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead == nil {
		h.dead, h.before = &p, !h.said
	}
}

var (
	silence = regexp.MustCompile(`rank \d+ \([^)]*\)(?: and rank \d+ \([^)]*\))* does not answer`)
	ranked  = regexp.MustCompile(`rank (\d+)`)
)

// line takes up a line that a process has written.
func (h *Heard) line(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, list := range silence.FindAllString(text, -1) {
		for _, m := range ranked.FindAllStringSubmatch(list, -1) {
			if rank, err := strconv.Atoi(m[1]); err == nil {
				h.silent[rank]++
			}
		}
	}
	if !h.said && strings.HasPrefix(text, "triax: ") {
		h.said = true
		h.failed()
	}
}

// Lost says which ranks left the others, "" where nobody knows. A process that died before any had failed was the first; later ones may have been ended by
// the launcher, and whom the others found silent counts for more.
func (h *Heard) Lost() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	died := ""
	if h.dead != nil {
		died = fmt.Sprintf("%v, process %d on %s, died", *h.dead, h.dead.pid, h.dead.host)
	}
	if h.before || len(h.silent) == 0 {
		return died
	}
	most := 0
	for _, n := range h.silent {
		most = max(most, n)
	}
	var names []string
	for rank, n := range h.silent {
		if n == most {
			p := h.ranks[rank]
			p.rank = rank
			names = append(names, p.String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ") + " did not answer the others"
}

// ear passes on what is written, line by line to Heard too.
type ear struct {
	heard *Heard
	to    io.Writer
	line  []byte
}

// longest is the most of a line that is kept.
const longest = 64 << 10

func (e *ear) Write(text []byte) (int, error) {
	e.line = append(e.line, text...)
	for {
		end := bytes.IndexAny(e.line, "\n\r")
		if end < 0 {
			break
		}
		e.heard.line(string(e.line[:end]))
		e.line = e.line[end+1:]
	}
	if len(e.line) > longest {
		e.line = nil
	}
	return e.to.Write(text)
}
