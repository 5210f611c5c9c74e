package local

import (
	"math/rand/v2"
	"time"

	"triax/comm"
)

// Option changes how messages travel: for tests, and to play a slower network.
type Option func(*options)

type options struct {
	spin       int
	rendezvous bool
	copied     bool
	delay      func(from, to int, tag comm.Tag) time.Duration
	latency    time.Duration
	bandwidth  float64 // bytes per second; 0 is unbounded
}

// Rendezvous ends a send only when the receiver has taken the message, as a transport without buffers does.
func Rendezvous() Option { return func(o *options) { o.rendezvous = true } }

// Copied plays a network that copies: the receiver gets a copy made when the message was sent, and until it has been received the
// sender's memory holds poison. A sender that reads the memory again sees the poison; one that writes to it makes the receive fail.
func Copied() Option { return func(o *options) { o.copied = true } }

// Delayed holds every message back. Messages with the same sender, receiver and tag stay in order; others may overtake.
func Delayed(delay func(from, to int, tag comm.Tag) time.Duration) Option {
	return func(o *options) { o.delay = delay }
}

// Reordered lets messages of different tags overtake one another: each line of messages is held back by a time below most, drawn
// from seed, sender, receiver and tag.
func Reordered(seed uint64, most time.Duration) Option {
	return Delayed(func(from, to int, tag comm.Tag) time.Duration {
		key := uint64(tag.Kind)<<56 ^ uint64(from)<<44 ^ uint64(to)<<32 ^ uint64(tag.Stage)<<20 ^ uint64(tag.Micro)
		return time.Duration(rand.New(rand.NewPCG(seed, key)).Int64N(int64(most)))
	})
}

// Linked plays a network: between any two ranks and in each direction messages follow one another at so many bytes
// per second, and arrive latency after their last byte has left.
func Linked(latency time.Duration, bytesPerSecond float64) Option {
	return func(o *options) { o.latency, o.bandwidth = latency, bytesPerSecond }
}
