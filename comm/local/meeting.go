package local

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// spinRounds is how often a waiting rank looks before it parks, when every rank has a core: some ten microseconds,
// less than a wake-up costs.
const spinRounds = 20000

// meeting is a barrier that is used again and again. It allocates nothing.
type meeting struct {
	size  int
	spin  int
	round atomic.Uint32

	mu      sync.Mutex
	arrived int
	parked  []bool
	wake    []chan struct{} // by place, one slot each
	broken  error           // why nobody will ever meet again
}

func newMeeting(size, spin int) *meeting {
	m := &meeting{size: size, spin: spin, parked: make([]bool, size)}
	for range size {
		m.wake = append(m.wake, make(chan struct{}, 1))
	}
	return m
}

// arrive waits for all members. A nil ctx cannot be ended. Either all members meet or none does: one that gives up
// breaks the meeting for good.
func (m *meeting) arrive(ctx context.Context, place int) error {
	m.mu.Lock()
	if m.broken != nil {
		defer m.mu.Unlock()
		return cause(ctx, m.broken)
	}
	round := m.round.Load()
	if m.arrived++; m.arrived == m.size {
		m.arrived = 0
		m.round.Add(1)
		m.wakeAll()
		m.mu.Unlock()
		return nil
	}
	m.mu.Unlock()
	for range m.spin {
		if m.round.Load() != round {
			return nil
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
	var done <-chan struct{}
	if ctx != nil {
		done = ctx.Done()
	}
	select {
	case <-m.wake[place]:
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.round.Load() != round {
			return nil
		}
		return cause(ctx, m.broken)
	case <-done:
		return m.leave(ctx, place, round)
	}
}

// leave gives up, unless the others have met in the meantime.
func (m *meeting) leave(ctx context.Context, place int, round uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.parked[place] { // a wake-up is in the channel
		<-m.wake[place]
		if m.round.Load() != round {
			return nil
		}
		return cause(ctx, m.broken)
	}
	m.parked[place] = false
	m.broken = fmt.Errorf("the member at place %d left: %w", place, context.Cause(ctx))
	m.wakeAll()
	return context.Cause(ctx)
}

func (m *meeting) wakeAll() {
	for i, p := range m.parked {
		if p {
			m.parked[i] = false
			m.wake[i] <- struct{}{}
		}
	}
}

// cause prefers the reason why this rank's own run ends.
func cause(ctx context.Context, broken error) error {
	if ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return broken
}
