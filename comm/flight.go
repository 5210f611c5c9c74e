package comm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recorder is one rank's flight recorder: its last calls, ended or under way, and the sequence of its collectives on each group.
// Recorded fills it. A rank that hangs is told by what it was doing:
//
//	rank 1: 41 calls
//	  40 all_reduce of 4096 float32 on tp [0 1]: took 1.2ms
//	  41 recv from rank 0, forward to stage 1, microbatch 3: under way for 5s
type Recorder struct {
	rank int

	mu        sync.Mutex
	ring      []flight // flight n is at n % len(ring)
	count     int
	sequences map[string]*Sequence
}

// flight is one call; where it went is put in words only when someone asks.
type flight struct {
	group string // of a collective
	step  Step
	peer  int // of a message
	tag   Tag
	start time.Time
	ended bool
	took  time.Duration
	err   error
}

// recorderKeeps is how many calls a recorder keeps.
const recorderKeeps = 64

// NewRecorder makes the recorder of a rank.
func NewRecorder(rank int) *Recorder {
	return &Recorder{rank: rank, ring: make([]flight, recorderKeeps), sequences: map[string]*Sequence{}}
}

// start records that a call begins, and returns its number.
func (r *Recorder) start(f flight) int {
	f.start = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.count
	r.count++
	r.ring[n%len(r.ring)] = f
	if f.group != "" {
		s := r.sequences[f.group]
		if s == nil {
			s = &Sequence{Group: f.group, Rank: r.rank}
			r.sequences[f.group] = s
		}
		s.add(f.step)
	}
	return n
}

func (r *Recorder) end(n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count-n > len(r.ring) {
		return // forgotten meanwhile
	}
	f := &r.ring[n%len(r.ring)]
	f.ended, f.err, f.took = true, err, time.Since(f.start)
}

// Sequences lists what this rank has called on each group, ordered by group.
func (r *Recorder) Sequences() []Sequence {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Sequence
	for _, s := range r.sequences {
		all = append(all, s.clone())
	}
	slices.SortFunc(all, func(a, b Sequence) int { return cmp.Compare(a.Group, b.Group) })
	return all
}

// UnderWay says in one line which calls have not ended: "recv from rank 0, ...: under way for 5s"; "" when there are none.
func (r *Recorder) UnderWay() string {
	return strings.Join(r.lines(func(f flight) bool { return !f.ended }, false), "; ")
}

// String lists the calls that are kept, oldest first.
func (r *Recorder) String() string {
	r.mu.Lock()
	count := r.count
	r.mu.Unlock()
	head := fmt.Sprintf("rank %d: %d calls", r.rank, count)
	return strings.Join(append([]string{head}, r.lines(func(flight) bool { return true }, true)...), "\n  ")
}

func (r *Recorder) lines(keep func(flight) bool, numbers bool) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for n := max(0, r.count-len(r.ring)); n < r.count; n++ {
		if f := r.ring[n%len(r.ring)]; keep(f) {
			line := f.describe(now)
			if numbers {
				line = fmt.Sprintf("%d %s", n+1, line)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func (f flight) describe(now time.Time) string {
	var what string
	switch {
	case f.group != "":
		what = fmt.Sprintf("%v on %s", f.step, f.group)
	case f.step.Kind == KindSend:
		what = fmt.Sprintf("send of %d %v to rank %d, %v", f.step.Len, f.step.DType, f.peer, f.tag)
	default:
		what = fmt.Sprintf("recv of %d %v from rank %d, %v", f.step.Len, f.step.DType, f.peer, f.tag)
	}
	switch {
	case !f.ended:
		return fmt.Sprintf("%s: under way for %v", what, now.Sub(f.start))
	case f.err != nil:
		return fmt.Sprintf("%s: failed after %v", what, f.took)
	}
	return fmt.Sprintf("%s: took %v", what, f.took)
}
