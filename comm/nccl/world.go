package nccl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"triax/comm"
	"triax/cuda/nccl"
	"triax/tensor"
)

// Options say who a rank is and what it works with.
type Options struct {
	Rank, Size int
	Hub        string // its address
	Library    *nccl.Library
	Device     Device
	// Patience is how long the hub is looked for, and how long ranks wait for one another at the end; 0 is two minutes.
	Patience time.Duration
	// MaxCTAs bounds the blocks of the device that a communicator uses; 0 leaves it to the library.
	MaxCTAs int
	// InOrder leaves the hub out of collectives: all ranks give all their calls, on all groups, in one order, and nobody compares them.
	InOrder bool
}

// World is a rank's place among all.
type World struct {
	o    Options
	eng  *engine
	used atomic.Bool // there is a device, not yet left
	link *link

	base    *channel    // all ranks
	lanes   [2]*channel // all ranks, for messages: forward and backward
	scratch scratch
	parts   map[string]*channel // made by Partition, not yet joined
	meets   map[string]*meet    // that this rank has come to; on the engine's thread
	outbox  map[int]*outgoing   // messages that have not left; on the engine's thread
	sent    int

	heard  sync.WaitGroup
	heap   *tensor.Heap
	once   sync.Once
	heaped chan struct{} // closed when there is a heap for messages
	failed chan struct{} // closed when another rank has failed
	over   chan struct{} // closed when this rank's transport is over, for whatever cause

	mu      sync.Mutex
	cause   error // another rank's
	end     error // of everything
	changed chan struct{}
	lines   map[sender][]arrived
	data    map[sender][]hostMessage
	state   func() string
	turn    int
	answers map[int]string
}

// meet is what happens when all members have come, or when that has been given up.
type meet struct {
	then   func(bodies [][]byte)
	giveUp func(error)
}

// Open brings a rank into the world with its device; all ranks call it.
func Open(ctx context.Context, o Options) (*World, error) {
	w, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := w.Use(ctx, o.Library, o.Device); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Connect brings a rank into the world without a device: ranks can speak, and move nothing.
func Connect(ctx context.Context, o Options) (*World, error) {
	if o.Patience == 0 {
		o.Patience = 2 * time.Minute
	}
	w := &World{
		o: o, eng: newEngine(), parts: map[string]*channel{}, meets: map[string]*meet{}, outbox: map[int]*outgoing{}, heaped: make(chan struct{}),
		failed: make(chan struct{}), over: make(chan struct{}), changed: make(chan struct{}), lines: map[sender][]arrived{}, data: map[sender][]hostMessage{},
		state: func() string { return "" },
	}
	var err error
	if w.link, err = dial(ctx, o); err != nil {
		return nil, err
	}
	w.heard.Go(w.listen)
	return w, nil
}

// Use gives this rank its device, and makes the communicators of all ranks; all ranks call it, once. Where the environment does not say otherwise the
// library is told to keep the order of issue across communicators, so this comes before any other use of it.
func (w *World) Use(ctx context.Context, library *nccl.Library, d Device) error {
	const order = "NCCL_LAUNCH_ORDER_IMPLICIT"
	if _, set := os.LookupEnv(order); !set {
		if err := os.Setenv(order, "1"); err != nil {
			return err
		}
	}
	w.o.Library, w.o.Device = library, d
	if err := w.eng.start(library, d); err != nil {
		return fmt.Errorf("nccl: rank %d: %w", w.o.Rank, err)
	}
	w.used.Store(true)
	if err := w.meetAll(ctx); err != nil {
		return fmt.Errorf("nccl: rank %d: %w", w.o.Rank, err)
	}
	return nil
}

// dial looks for the hub, which may not be there yet, and whose host's name may not be known yet.
func dial(ctx context.Context, o Options) (*link, error) {
	limited, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	var dialer net.Dialer
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		c, err := dialer.DialContext(limited, "tcp", o.Hub)
		if err == nil {
			return greet(newLink(c), o)
		}
		select {
		case <-time.After(pause):
		case <-limited.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("nccl: rank %d has not found the hub, which rank 0 starts, at %s within %v: %w", o.Rank, o.Hub, o.Patience, err)
		}
	}
}

func greet(l *link, o Options) (*link, error) {
	l.send(frame{Kind: kindHello, From: o.Rank, Size: o.Size})
	f, err := l.read()
	if err == nil && f.Kind == kindHello {
		return l, nil
	}
	if err == nil {
		err = errors.New(f.Text)
	}
	return nil, errors.Join(fmt.Errorf("nccl: the hub at %s: %w", o.Hub, err), l.close())
}

// meetAll makes the communicators of all ranks.
func (w *World) meetAll(ctx context.Context) error {
	var id nccl.ID
	if w.o.Rank == 0 {
		var err error
		if id, err = w.o.Library.UniqueID(); err != nil {
			return err
		}
	}
	return w.together(ctx, "world", w.all(), id[:], func(bodies [][]byte) (err error) {
		if copy(id[:], bodies[0]) != len(id) {
			return errors.New("the world's name is cut off")
		}
		if w.base, err = w.eng.open(w.o.Library.Init(id, w.o.Size, w.o.Rank, w.o.MaxCTAs)); err != nil {
			return err
		}
		for i := range w.lanes {
			if w.lanes[i], err = w.eng.open(w.base.comm.Split(0, w.o.Rank, w.o.Size, w.o.Rank, w.o.MaxCTAs)); err != nil {
				return err
			}
		}
		w.scratch, err = newScratch(w.o.Device)
		return err
	})
}

func (w *World) all() []int {
	all := make([]int, w.o.Size)
	for i := range all {
		all[i] = i
	}
	return all
}

// together runs f on the engine's thread once all members have come here.
func (w *World) together(ctx context.Context, name string, ranks []int, body []byte, f func(bodies [][]byte) error) error {
	done := make(chan error, 1)
	w.meet(name, ranks, body, &meet{func(bodies [][]byte) { done <- f(bodies) }, func(err error) { done <- err }})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		w.giveUp(context.Cause(ctx))
		return context.Cause(ctx)
	}
}

// meet tells the hub that this rank is here.
func (w *World) meet(name string, ranks []int, body []byte, m *meet) {
	w.eng.do(func() {
		if w.eng.dead != nil {
			m.giveUp(w.eng.dead)
			return
		}
		w.meets[fmt.Sprint(name, ranks)] = m
		w.link.send(frame{Kind: kindMeet, Name: name, Ranks: ranks, Bodies: [][]byte{body}})
	})
}

// Size and Rank are the world's.
func (w *World) Size() int { return w.o.Size }
func (w *World) Rank() int { return w.o.Rank }

// Transport is this rank's end. Received messages become tensors of heap; a world has one.
func (w *World) Transport(heap *tensor.Heap) comm.Transport {
	w.once.Do(func() {
		w.heap = heap
		close(w.heaped)
	})
	return &transport{w}
}

// Leave ends the use of this rank's device, together with all others; after a failure it waits for nobody. Ranks can still speak.
func (w *World) Leave() error {
	if !w.used.Swap(false) {
		return nil
	}
	err := w.eng.wait(func() error {
		w.settle(errors.New("the transport is closed"))
		return nil
	})
	return errors.Join(err, w.eng.close(w.o.Patience))
}

// Close ends this rank's part.
func (w *World) Close() error {
	err := w.Leave()
	w.mu.Lock()
	if w.end == nil {
		w.end = errors.New("the transport is closed")
		close(w.over)
	}
	w.mu.Unlock()
	w.link.send(frame{Kind: kindBye})
	err = errors.Join(err, w.link.close())
	w.heard.Wait()
	return err
}
