package nccl

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"triax/cuda/nccl"
)

// engine is the thread that makes all calls into the library, and watches what they have begun.
type engine struct {
	lib   *nccl.Library
	dev   Device
	tasks chan func()
	ended chan struct{}
	hurry atomic.Pointer[error] // set by whoever wants all waits to end: the cause

	// On the thread only.
	running  []*running
	channels []*channel
	dead     error // the cause of the end of all communicators
	closing  bool
	waits    []*waiting
}

// channel is a communicator with a stream of its own.
type channel struct {
	comm   *nccl.Comm
	stream Stream
}

// running is a group of operations that the device has been given.
type running struct {
	on   *channel
	over Mark
	end  func(error)
}

// waiting is something to do when a mark has been reached.
type waiting struct {
	mark Mark
	then func(error)
}

const (
	spinFor = 200 * time.Microsecond // then the engine lets others have the core
	nap     = 50 * time.Microsecond
)

// newEngine makes an engine that keeps its tasks until it is started.
func newEngine() *engine { return &engine{tasks: make(chan func(), 1024), ended: make(chan struct{})} }

func (e *engine) start(lib *nccl.Library, dev Device) error {
	e.lib, e.dev = lib, dev
	bound := make(chan error)
	go func() {
		defer close(e.ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := dev.Bind()
		bound <- err
		if err == nil {
			e.loop()
		}
	}()
	return <-bound
}

// do gives the thread a task. Tasks that come after the engine's end are not done.
func (e *engine) do(f func()) {
	select {
	case e.tasks <- f:
	case <-e.ended:
	}
}

// wait gives the thread a task and waits for its outcome.
func (e *engine) wait(f func() error) error {
	done := make(chan error, 1)
	e.do(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-e.ended:
	}
	select {
	case err := <-done: // the last task ends the engine: both are ready
		return err
	default:
		return errors.New("the transport is closed")
	}
}

func (e *engine) loop() {
	quiet := time.Now()
	for !e.closing {
		idle := len(e.running) == 0 && len(e.waits) == 0
		if idle {
			(<-e.tasks)()
			quiet = time.Now()
			continue
		}
		select {
		case f := <-e.tasks:
			f()
			quiet = time.Now()
			continue
		default:
		}
		if cause := e.hurry.Load(); cause != nil && e.dead == nil {
			e.abort(*cause)
		}
		if e.look() {
			quiet = time.Now()
		} else if time.Since(quiet) > spinFor {
			time.Sleep(nap)
		} else {
			runtime.Gosched()
		}
	}
}

// look ends what has ended.
func (e *engine) look() (some bool) {
	waits := e.waits
	e.waits = nil
	for _, w := range waits {
		if ok, err := w.mark.Reached(); ok || err != nil || e.dead != nil {
			some = true
			w.then(err)
		} else {
			e.waits = append(e.waits, w)
		}
	}
	left := e.running[:0]
	var failed error
	for _, r := range e.running {
		ok, err := r.over.Reached()
		if err == nil && !ok {
			_, err = r.on.comm.State()
		}
		if err != nil && failed == nil {
			failed = err
		}
		if !ok {
			left = append(left, r)
			continue
		}
		some = true
		r.end(err)
	}
	clear(e.running[len(left):])
	e.running = left
	if failed != nil {
		e.abort(failed)
	}
	return some
}

// ready waits until the library is through with what was begun on a communicator: it takes nothing before. Peers may have to come to it too.
func (e *engine) ready(c *nccl.Comm) error {
	for begin := time.Now(); ; {
		done, err := c.State()
		if done || err != nil {
			return err
		}
		if cause := e.hurry.Load(); cause != nil {
			return *cause
		}
		if time.Since(begin) > spinFor {
			time.Sleep(nap)
		}
	}
}

// issue gives the device a group of operations of one channel, after all marks. end hears of its end, on the thread.
func (e *engine) issue(on *channel, after []Mark, ops []nccl.Op, end func(error)) {
	err := e.dead
	if err == nil {
		err = e.ready(on.comm)
	}
	for _, m := range after {
		if err == nil {
			err = on.stream.After(m)
		}
	}
	for i := range ops {
		ops[i].Comm, ops[i].Stream = on.comm, on.stream.Handle()
	}
	if err == nil {
		err = e.lib.Issue(ops)
	}
	var over Mark
	if err == nil {
		err = e.ready(on.comm) // before the stream is asked about it
	}
	if err == nil {
		over, err = on.stream.Mark()
	}
	if err != nil {
		e.abort(err)
		end(err)
		return
	}
	e.running = append(e.running, &running{on, over, end})
}

// open makes a channel of a communicator that is being made.
func (e *engine) open(c *nccl.Comm, err error) (*channel, error) {
	if err != nil {
		return nil, err
	}
	on := &channel{comm: c}
	e.channels = append(e.channels, on) // an abort ends it from here on
	if err := e.ready(c); err != nil {
		return nil, err
	}
	on.stream, err = e.dev.Stream()
	return on, err
}

// abort ends all communicators, and with them all that is under way: then nothing writes to the calls' memory any more.
func (e *engine) abort(cause error) {
	if e.dead != nil {
		return
	}
	e.dead = cause
	for _, on := range e.channels {
		if err := on.comm.Abort(); err != nil {
			e.dead = errors.Join(e.dead, fmt.Errorf("abort: %w", err))
		}
	}
	for _, r := range e.running {
		r.end(cause)
	}
	e.running = nil
}

// close ends the engine. After a failure communicators are gone already; else all ranks end theirs together.
func (e *engine) close(limit time.Duration) error {
	err := e.wait(func() error {
		defer func() { e.closing = true }()
		if cause := e.hurry.Load(); cause != nil {
			e.abort(*cause)
		}
		if e.dead != nil {
			return nil
		}
		var all error
		for i := len(e.channels) - 1; i >= 0; i-- { // parts before what they were split from
			all = errors.Join(all, e.finish(e.channels[i], limit))
		}
		return all
	})
	<-e.ended
	return err
}

func (e *engine) finish(on *channel, limit time.Duration) error {
	err := on.comm.Finalize()
	for begin := time.Now(); err == nil; {
		var done bool
		if done, err = on.comm.State(); done {
			break
		}
		if time.Since(begin) > limit {
			return errors.Join(fmt.Errorf("a communicator does not end within %v: other ranks have not ended theirs", limit), on.comm.Abort())
		}
		time.Sleep(nap)
	}
	if err != nil {
		return errors.Join(err, on.comm.Abort())
	}
	err = on.comm.Destroy()
	if on.stream != nil {
		err = errors.Join(err, on.stream.Close())
	}
	return err
}
