package local

import (
	"sync"
	"time"

	"triax/comm"
)

// links remembers when each direction between two ranks is free again.
type links struct {
	mu   sync.Mutex
	free map[[2]int]*link
}

type link struct{ until time.Time }

func (w *World) linked() bool { return w.opts.latency > 0 || w.opts.bandwidth > 0 }

// arrival is when a message sent now is there.
func (w *World) arrival(from, to int, tag comm.Tag, bytes int64, now time.Time) time.Time {
	at := now
	if w.linked() {
		w.links.mu.Lock()
		l := w.links.free[[2]int{from, to}]
		if l == nil {
			l = &link{}
			w.links.free[[2]int{from, to}] = l
		}
		if l.until.After(at) {
			at = l.until
		}
		if w.opts.bandwidth > 0 {
			at = at.Add(time.Duration(float64(bytes) / w.opts.bandwidth * float64(time.Second)))
		}
		l.until = at
		at = at.Add(w.opts.latency)
		w.links.mu.Unlock()
	}
	if w.opts.delay != nil {
		at = at.Add(w.opts.delay(from, to, tag))
	}
	return at
}
