package comm

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Stream runs one rank's communication beside its computation: calls given to it run one after another, in the order in which they
// were given, on one goroutine of their own. All members of a group must give theirs in the same order, as they
// must without a stream. What a call computes is what it would compute at once; only the time differs.
//
//	compute  ─F0─┬─F1─┬─F2─ wait ─
//	stream       └─ gather 1 ─┴─ gather 2 ─
//
// The memory of a call belongs to the stream until its Pending has ended. After a call has failed no other runs: this rank would
// be out of step with its peers, and all later calls end with the first error. A nil Stream runs each call at once, in the
// caller's goroutine.
type Stream struct {
	calls chan streamCall
	ended sync.WaitGroup
}

type streamCall struct {
	ctx context.Context
	f   func(ctx context.Context) error
	end func(Times, error)
}

// streamDepth is how many calls may wait; a caller that is further ahead blocks.
const streamDepth = 256

// NewStream starts a stream. Close stops it.
func NewStream() *Stream {
	s := &Stream{calls: make(chan streamCall, streamDepth)}
	s.ended.Go(func() {
		var first error
		for c := range s.calls {
			if first == nil {
				first = c.run()
			}
			c.end(Times{}, first)
		}
	})
	return s
}

// run turns a panic into an error, so that it reaches the rank that waits, and with it the run's place and cause.
func (c *streamCall) run() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return c.f(context.WithValue(c.ctx, besideKey{}, true))
}

type besideKey struct{}

// Beside tells that a call runs on a stream: computation goes on beside it, and a transport that polls should leave it the processor.
func Beside(ctx context.Context) bool { return ctx.Value(besideKey{}) != nil }

// Do gives a call to the stream. It blocks while the stream is far behind, at most until ctx ends.
func (s *Stream) Do(ctx context.Context, f func(ctx context.Context) error) *Pending {
	p, end := NewPending()
	if s == nil {
		end(Times{}, f(ctx))
		return p
	}
	c := streamCall{ctx, f, end}
	select {
	case s.calls <- c:
		return p
	default:
	}
	select {
	case s.calls <- c:
	case <-ctx.Done():
		end(Times{}, context.Cause(ctx))
	}
	return p
}

// Close waits until all calls given have ended. No call may be given afterwards. When a run fails, end its ctx first.
func (s *Stream) Close() {
	if s == nil {
		return
	}
	close(s.calls)
	s.ended.Wait()
}
