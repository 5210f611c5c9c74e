package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// generator is one named schedule: what it needs of v, and the function that makes it.
type generator struct {
	name    string
	about   string
	chunks  int  // the chunks a rank when none are asked for
	anyMore bool // more chunks than that are possible too, and one
	least   int  // microbatches, as a multiple of p; 0 for no bound
	search  bool // the order of ops is searched for: making it takes time that grows faster than its length
	make    func(p, m, v int) *Schedule
}

// generators lists every schedule that New makes, in the order in which Names gives them.
var generators = []generator{
	{"gpipe", "all forwards, then all backwards", 1, false, 0, false, func(p, m, _ int) *Schedule { return GPipe(p, m) }},
	{"1f1b", "one forward, one backward", 1, false, 0, false, func(p, m, _ int) *Schedule { return OneFOneB(p, m) }},
	{"interleaved", "1f1b over v chunks a rank", 2, true, 0, false, Interleaved},
	{"looped-bfs", "breadth first: each chunk takes all microbatches", 2, true, 0, false, LoopedBFS},
	{"zb-h1", "1f1b with weight gradients in what would be idle", 1, false, 0, false, func(p, m, _ int) *Schedule { return ZBH1(p, m) }},
	{"zb-h2", "twice as far ahead: no idle time between a rank's ops", 1, false, 0, false, func(p, m, _ int) *Schedule { return ZBH2(p, m) }},
	{"zb-v", "zero bubble on two chunks there and back", 2, false, 0, true, func(p, m, _ int) *Schedule { return ZBV(p, m) }},
	{"v-half", "zb-v in half the activation memory", 2, false, 0, true, func(p, m, _ int) *Schedule { return VHalf(p, m) }},
	{"v-min", "zb-v in a third of the activation memory", 2, false, 0, true, func(p, m, _ int) *Schedule { return VMin(p, m) }},
	{"dualpipe-v", "both directions at once on two chunks there and back", 2, false, 2, false, func(p, m, _ int) *Schedule { return DualPipeV(p, m) }},
}

// Names lists the schedules that New knows.
func Names() []string {
	names := make([]string, len(generators))
	for i, g := range generators {
		names[i] = g.name
	}
	return names
}

// About says in a few words what the named schedule does; it is empty for an unknown name.
func About(name string) string {
	if g := lookup(name); g != nil {
		return g.about
	}
	return ""
}

func lookup(name string) *generator {
	if i := slices.IndexFunc(generators, func(g generator) bool { return g.name == name }); i >= 0 {
		return &generators[i]
	}
	return nil
}

// ChunksOf is the number of chunks a rank that a named schedule has when v are asked for; 0 asks for its own number.
func ChunksOf(name string, v int) int {
	if g := lookup(name); g != nil && v == 0 {
		return g.chunks
	}
	return max(1, v)
}

// Check reports every reason why New would fail, without making the schedule.
func Check(name string, p, m, v int) error { return check(lookup(name), name, p, m, v) }

// Limits keep a wrong number from asking for more memory than any machine has.
const (
	maxRanks  = 1 << 14
	maxMicros = 1 << 20
	maxOps    = 1 << 26
)

// New makes the named schedule for p ranks, m microbatches and v chunks a rank; v = 0 takes the schedule's own
// number (1, or 2 for those that need several). The error lists every problem with a value that would work.
func New(name string, p, m, v int) (*Schedule, error) {
	g := lookup(name)
	if err := check(g, name, p, m, v); err != nil {
		return nil, err
	}
	if v == 0 {
		v = g.chunks
	}
	s := g.make(p, m, v)
	s.Limit = limits[name](p, m, v)
	return s, nil
}

func check(g *generator, name string, p, m, v int) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("schedule: "+format, args...)) }
	if g == nil {
		bad("name %q is none of %s; nearest: %q", name, strings.Join(Names(), ", "), nearest(name, Names()))
	}
	if p < 1 || p > maxRanks {
		bad("ranks %d: must be 1 to %d; nearest: %d", p, maxRanks, min(max(p, 1), maxRanks))
	}
	if m < 1 || m > maxMicros {
		bad("microbatches %d: must be 1 to %d; nearest: %d", m, maxMicros, min(max(m, 1), maxMicros))
	}
	switch {
	case v < 0:
		bad("chunks %d: must not be negative; 0 takes the schedule's own number", v)
	case g != nil && v > 0 && !g.anyMore && v != g.chunks:
		bad("chunks %d: %s holds exactly %d a rank; nearest: %d", v, name, g.chunks, g.chunks)
	}
	if g != nil && p >= 1 && m >= 1 && m < g.least*p {
		bad("microbatches %d: %s needs at least %d for %d ranks; nearest: %d", m, name, g.least*p, p, g.least*p)
	}
	if len(errs) == 0 && int64(p)*int64(m)*int64(max(v, g.chunks))*3 > maxOps {
		bad("%d ranks x %d microbatches x %d chunks: more than %d ops; fewer microbatches would work", p, m, max(v, g.chunks), maxOps)
	}
	return errors.Join(errs...)
}

// nearest is the candidate with the smallest edit distance to name.
func nearest(name string, candidates []string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	best, least := "", 1<<30
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is Levenshtein's: insertions, deletions and substitutions of bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Searched says that the named schedule's order of ops is searched for: making it takes time that grows faster than its length.
func Searched(name string) bool {
	g := lookup(name)
	return g != nil && g.search
}
