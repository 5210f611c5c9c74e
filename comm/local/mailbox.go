package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"triax/comm"
	"triax/tensor"
)

// message is a tensor on its way.
type message struct {
	t       *tensor.Tensor
	seal    *sealed // with the Copied option
	sent    time.Time
	arrives time.Time
	taken   func(comm.Times, error) // ends the send
}

// sender names a line of messages: those never overtake one another.
type sender struct {
	from int
	tag  comm.Tag
}

// mailbox holds one rank's messages until it asks for them.
type mailbox struct {
	mu    sync.Mutex
	lines map[sender][]message
	wait  map[sender]chan struct{} // one slot, for a receiver that came first
}

func newMailbox() *mailbox {
	return &mailbox{lines: map[sender][]message{}, wait: map[sender]chan struct{}{}}
}

func (b *mailbox) put(s sender, m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines[s] = append(b.lines[s], m)
	if c := b.wait[s]; c != nil {
		delete(b.wait, s)
		c <- struct{}{}
	}
}

func (b *mailbox) take(ctx context.Context, s sender) (message, error) {
	for {
		b.mu.Lock()
		if line := b.lines[s]; len(line) > 0 {
			m := line[0]
			if len(line) == 1 {
				delete(b.lines, s)
			} else {
				line[0] = message{}
				b.lines[s] = line[1:]
			}
			b.mu.Unlock()
			return m, nil
		}
		if b.wait[s] != nil {
			b.mu.Unlock()
			return message{}, fmt.Errorf("two receives of %v from rank %d at a time", s.tag, s.from)
		}
		c := make(chan struct{}, 1)
		b.wait[s] = c
		b.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			b.mu.Lock()
			if b.wait[s] == c {
				delete(b.wait, s)
			}
			b.mu.Unlock()
			return message{}, context.Cause(ctx)
		}
	}
}

// drain releases all messages and ends their sends.
func (b *mailbox) drain() {
	b.mu.Lock()
	lines := b.lines
	b.lines = map[sender][]message{}
	b.mu.Unlock()
	for s, line := range lines {
		for _, m := range line {
			m.t.Release()
			if m.taken != nil {
				m.taken(comm.Times{}, fmt.Errorf("message %v was never received", s.tag))
			}
		}
	}
}
