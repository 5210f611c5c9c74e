package local

import (
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

// Copied copies a message when it is received, and gives the sender's memory back only then, as a network would: a sender that
// still writes to it, or reads it later, is found out (with a poisoning heap).
func Copied() Option { return func(o *options) { o.copied = true } }

// Delayed holds every message back. Messages with the same sender, receiver and tag stay in order; others may overtake.
func Delayed(delay func(from, to int, tag comm.Tag) time.Duration) Option {
	return func(o *options) { o.delay = delay }
}

// Linked plays a network: between any two ranks and in each direction messages follow one another at so many bytes
// per second, and arrive latency after their last byte has left.
func Linked(latency time.Duration, bytesPerSecond float64) Option {
	return func(o *options) { o.latency, o.bandwidth = latency, bytesPerSecond }
}
