package nccl

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
)

// Hub brings ranks together and puts all that moves between them on one line. One process of a run has it, rank 0's.
type Hub struct {
	listener net.Listener
	size     int
	ended    sync.WaitGroup

	mu       sync.Mutex
	links    []*link
	meetings map[string]*meeting
	closing  bool
	left     int
	all      chan struct{} // closed when all ranks have come and left
}

// meeting is a call that some members have come to.
type meeting struct {
	bodies [][]byte
	here   int
}

// Listen starts the hub of a world of size ranks at an address, "host:port".
func Listen(ctx context.Context, address string, size int) (*Hub, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	h := &Hub{listener: l, size: size, links: make([]*link, size), meetings: map[string]*meeting{}, all: make(chan struct{})}
	h.ended.Go(h.accept)
	return h, nil
}

// Address is where the hub listens.
func (h *Hub) Address() string { return h.listener.Addr().String() }

// Done is closed when all ranks have come and left.
func (h *Hub) Done() <-chan struct{} { return h.all }

// Close ends the hub. Ranks that have not said goodbye take it for a failure.
func (h *Hub) Close() error {
	err := h.listener.Close()
	h.mu.Lock()
	h.closing = true
	links := slices.Clone(h.links)
	h.mu.Unlock()
	for _, l := range links {
		if l != nil {
			_ = l.close() // its reader may have closed it already
		}
	}
	h.ended.Wait()
	return err
}

func (h *Hub) accept() {
	for {
		c, err := h.listener.Accept()
		if err != nil {
			return // closed
		}
		h.ended.Go(func() { h.serve(newLink(c)) })
	}
}

// serve hears one rank until it leaves.
func (h *Hub) serve(l *link) {
	hello, err := l.read()
	if err != nil || hello.Kind != kindHello {
		_ = l.close() // a stranger
		return
	}
	if why := h.admit(hello, l); why != "" {
		l.send(frame{Kind: kindRefused, Text: why})
		_ = l.close()
		return
	}
	rank := hello.From
	for {
		f, err := l.read()
		if err != nil || f.Kind == kindBye {
			h.leave(rank, l, err)
			return
		}
		h.hear(rank, f)
	}
}

func (h *Hub) admit(hello frame, l *link) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch rank := hello.From; {
	case hello.Size != h.size:
		return fmt.Sprintf("rank %d speaks of %d ranks, the hub of %d", rank, hello.Size, h.size)
	case rank < 0 || rank >= h.size:
		return fmt.Sprintf("rank %d of %d", rank, h.size)
	case h.links[rank] != nil:
		return fmt.Sprintf("rank %d is there already: two processes have one rank", rank)
	case h.closing:
		return "the run is over"
	default:
		h.links[rank] = l
		l.send(frame{Kind: kindHello})
		return ""
	}
}

// leave takes a rank out. One that goes without a word has failed, and all others hear of it.
func (h *Hub) leave(rank int, l *link, err error) {
	_ = l.close() // it is gone either way
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left++; h.left == h.size {
		close(h.all)
	}
	if err != nil && !h.closing {
		h.toAllBut(rank, frame{Kind: kindStop, From: rank, Text: fmt.Sprintf("rank %d is gone: its connection ended (%v)", rank, err)})
	}
}

func (h *Hub) toAllBut(rank int, f frame) {
	for r, l := range h.links {
		if r != rank && l != nil {
			l.send(f)
		}
	}
}

func (h *Hub) to(rank int, f frame) {
	if rank >= 0 && rank < h.size && h.links[rank] != nil {
		h.links[rank].send(f)
	}
}

// hear acts on what a rank says. The lock makes the line: what is told to several ranks is told to all of them before anything else is.
func (h *Hub) hear(rank int, f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.From = rank
	switch f.Kind {
	case kindMeet:
		h.meet(rank, f)
	case kindMessage:
		h.to(rank, f)
		h.to(f.To, f)
	case kindStop:
		h.toAllBut(rank, f)
	case kindData, kindAsk, kindAnswer:
		h.to(f.To, f)
	}
}

func (h *Hub) meet(rank int, f frame) {
	place := slices.Index(f.Ranks, rank)
	if place < 0 || len(f.Bodies) != 1 {
		return
	}
	name := fmt.Sprint(f.Name, f.Ranks)
	m := h.meetings[name]
	if m == nil {
		m = &meeting{bodies: make([][]byte, len(f.Ranks))}
		h.meetings[name] = m
	}
	m.bodies[place] = f.Bodies[0]
	if m.here++; m.here < len(f.Ranks) {
		return
	}
	delete(h.meetings, name)
	for _, r := range f.Ranks {
		h.to(r, frame{Kind: kindMeet, Name: f.Name, Ranks: f.Ranks, Bodies: m.bodies})
	}
}
