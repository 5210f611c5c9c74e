package comm

import (
	"context"
	"sync"
)

// Stream runs one rank's communication beside its computation: calls given to it run one after another, in the order in which they
// were given, on one goroutine of their own. All members of a group must give theirs in the same order, as they
// must without a stream. What a call computes is what it would compute at once; only the time differs.
//
//	compute  ─F0─┬─F1─┬─F2─ wait ─
//	stream       └─ gather 1 ─┴─ gather 2 ─
//
// The memory of a call belongs to the stream until its Pending has ended. A nil Stream runs each call at once, in the
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
		for c := range s.calls {
			if c.ctx.Err() != nil {
				c.end(Times{}, context.Cause(c.ctx))
				continue
			}
			c.end(Times{}, c.f(c.ctx))
		}
	})
	return s
}

// Do gives a call to the stream.
func (s *Stream) Do(ctx context.Context, f func(ctx context.Context) error) *Pending {
	p, end := NewPending()
	if s == nil {
		end(Times{}, f(ctx))
		return p
	}
	s.calls <- streamCall{ctx, f, end}
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
