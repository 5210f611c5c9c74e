package local

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// spinRounds is how often a waiting member looks before it parks, when every rank has a core: about half a microsecond,
// what parking costs.
const spinRounds = 1000

// meeting is a barrier that is used again and again. It allocates nothing.
type meeting struct {
	size  int
	spin  int
	round atomic.Uint32

	mu      sync.Mutex
	arrived int
	parked  []bool
	woke    []bool          // by place: this member ended the round before and had to wake others
	wake    []chan struct{} // by place, one slot each
	broken  error           // why nobody will ever meet again
}

func newMeeting(size, spin int) *meeting {
	m := &meeting{size: size, spin: spin, parked: make([]bool, size), woke: make([]bool, size)}
	for range size {
		m.wake = append(m.wake, make(chan struct{}, 1))
	}
	return m
}

// arrive waits for all members. Either all members meet or none does: one that gives up
// breaks the meeting for good.
func (m *meeting) arrive(ctx context.Context, place int) error {
	m.mu.Lock()
	if m.broken != nil {
		defer m.mu.Unlock()
		return cause(ctx, m.broken)
	}
	round := m.round.Load()
	woke := m.woke[place]
	m.woke[place] = false
	if m.arrived++; m.arrived == m.size {
		m.arrived = 0
		m.round.Add(1)
		m.woke[place] = m.wakeAll()
		m.mu.Unlock()
		return nil
	}
	m.mu.Unlock()
	if !woke { // those woken are queued behind this goroutine: looking would keep them from running
		for range m.spin {
			if m.round.Load() != round {
				return nil
			}
		}
	}
	return m.park(ctx, place, round)
}

func (m *meeting) park(ctx context.Context, place int, round uint32) error {
	m.mu.Lock()
	if m.round.Load() != round {
		m.mu.Unlock()
		return nil
	}
	if m.broken != nil {
		defer m.mu.Unlock()
		return cause(ctx, m.broken)
	}
	m.parked[place] = true
	m.mu.Unlock()
	select {
	case <-m.wake[place]:
		return m.outcome(ctx, round)
	case <-ctx.Done():
		return m.leave(ctx, place, round)
	}
}

// outcome says why a parked member was woken: the meeting took place, or never will.
func (m *meeting) outcome(ctx context.Context, round uint32) error {
	if m.round.Load() != round {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return cause(ctx, m.broken)
}

// leave gives up, unless the others have met in the meantime.
func (m *meeting) leave(ctx context.Context, place int, round uint32) error {
	m.mu.Lock()
	if !m.parked[place] { // a wake-up is in the channel
		m.mu.Unlock()
		<-m.wake[place]
		return m.outcome(ctx, round)
	}
	defer m.mu.Unlock()
	m.parked[place] = false
	m.broken = fmt.Errorf("the member at place %d left: %w", place, context.Cause(ctx))
	m.wakeAll()
	return context.Cause(ctx)
}

func (m *meeting) wakeAll() (any bool) {
	for i, p := range m.parked {
		if p {
			m.parked[i], any = false, true
			m.wake[i] <- struct{}{}
		}
	}
	return any
}

// cause prefers the reason why this rank's own run ends.
func cause(ctx context.Context, broken error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return broken
}
