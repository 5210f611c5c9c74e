package nccl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// RemoteError is the failure of another rank, as it told it.
type RemoteError struct {
	Rank int
	Text string
}

func (e *RemoteError) Error() string { return e.Text }

// listen hears the hub. What is on the line goes to the engine in order.
func (w *World) listen() {
	for {
		f, err := w.link.read()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) || w.open() {
				w.fail(&RemoteError{0, fmt.Sprintf("the hub on rank 0's host is gone: %v", err)})
			}
			return
		}
		w.hear(f)
	}
}

func (w *World) open() bool {
	select {
	case <-w.over:
		return false
	default:
		return true
	}
}

func (w *World) hear(f frame) {
	switch f.Kind {
	case kindMeet:
		w.eng.do(func() {
			key := fmt.Sprint(f.Name, f.Ranks)
			if m := w.meets[key]; m != nil { // else it has been given up
				delete(w.meets, key)
				m.then(f.Bodies)
			}
		})
	case kindMessage:
		select {
		case <-w.heaped:
		case <-w.over:
			return
		}
		w.eng.do(func() { w.start(f) })
	case kindData:
		w.deliver(f)
	case kindStop:
		w.fail(&RemoteError{f.From, f.Text})
	case kindAsk:
		w.mu.Lock()
		state := w.state
		w.mu.Unlock()
		w.link.send(frame{Kind: kindAnswer, To: f.From, Turn: f.Turn, Text: state()})
	case kindAnswer:
		w.mu.Lock()
		if f.Turn == w.turn && w.answers != nil {
			w.answers[f.From] = f.Text
		}
		w.notify()
		w.mu.Unlock()
	}
}

// notify wakes whoever waits in until; with the lock held.
func (w *World) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// fail notes that another rank has failed.
func (w *World) fail(err error) {
	w.mu.Lock()
	if w.cause == nil {
		w.cause = err
		close(w.failed)
	}
	w.mu.Unlock()
	w.giveUp(err)
}

// giveUp ends everything that is under way on this rank. The first cause stays.
func (w *World) giveUp(cause error) {
	w.mu.Lock()
	first := w.end == nil
	if first {
		w.end = cause
		close(w.over)
	}
	cause = w.end
	w.mu.Unlock()
	if !first {
		return
	}
	w.eng.hurry.Store(&cause)
	go w.eng.do(w.drop) // the queue may be full
}

// drop is the end of what waits; on the engine's thread.
func (w *World) drop() {
	cause := w.end
	w.eng.abort(cause)
	w.settle(cause)
}

// settle ends what has not been given to the device; on the engine's thread.
func (w *World) settle(cause error) {
	for key, m := range w.meets {
		delete(w.meets, key)
		m.giveUp(cause)
	}
	for id, m := range w.outbox {
		delete(w.outbox, id)
		m.finish(cause)
	}
}

// Failed is closed when another rank has failed; Cause then says why.
func (w *World) Failed() <-chan struct{} { return w.failed }
func (w *World) Cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// Stop tells all other ranks that this one has failed, and ends what is under way here.
func (w *World) Stop(cause error) {
	w.link.send(frame{Kind: kindStop, Text: cause.Error()})
	w.giveUp(cause)
}

// Report sets what this rank answers when others ask what it is doing.
func (w *World) Report(state func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
}

// RollCall asks ranks what they are doing, and returns what those say that answer in time: one that is killed, stopped or cut off does not.
func (w *World) RollCall(ranks []int, wait time.Duration) map[int]string {
	w.mu.Lock()
	w.turn++
	turn := w.turn
	w.answers = map[int]string{}
	w.mu.Unlock()
	for _, r := range ranks {
		w.link.send(frame{Kind: kindAsk, To: r, Turn: turn})
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_ = w.until(ctx, nil, func() bool { return len(w.answers) == len(ranks) }) // who is late is who is missing
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.answers
	w.answers = nil
	w.turn++
	return heard
}

// until waits until ready, which is asked with the lock held after every change.
func (w *World) until(ctx context.Context, over <-chan struct{}, ready func() bool) error {
	for {
		w.mu.Lock()
		ok, changed := ready(), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-over:
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.end
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
