package cuda

import (
	"fmt"
	"runtime"

	"triax/cuda/driver"
)

// owner is the goroutine that all calls of a device's context come from, on one thread of the system.
type owner struct {
	work chan task
	done chan struct{}
	err  error // the first failure; the owner's own
}

// task is a piece of work; reply, when not nil, gets its outcome. One that is always done is done even after a failure.
type task struct {
	f      func(*driver.Context) error
	reply  chan error
	always bool
}

// start binds a device.
func start(m *Machine, ordinal int) (*owner, driver.Info, error) {
	o := &owner{work: make(chan task, 256), done: make(chan struct{})}
	bound := make(chan error)
	var info driver.Info
	go func() {
		defer close(o.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		c, err := m.driver.Bind(ordinal)
		if err == nil {
			info = c.Info
		}
		bound <- err
		if err == nil {
			o.run(c)
		}
	}()
	err := <-bound
	return o, info, err
}

func (o *owner) run(c *driver.Context) {
	for t := range o.work {
		err := o.err
		if err == nil || t.always {
			err = t.f(c)
		}
		if o.err == nil {
			o.err = err
		}
		if t.reply != nil {
			t.reply <- o.err
		}
	}
}

// give hands over work that is not waited for.
func (o *owner) give(f func(*driver.Context) error) { o.work <- task{f: f} }

// wait hands over work and waits until it has been done, and all before it given to the device.
func (o *owner) wait(f func(*driver.Context) error) error {
	reply := make(chan error, 1)
	o.work <- task{f: f, reply: reply}
	return <-reply
}

// must is wait where the caller needs values: there are none after a failure.
func (o *owner) must(what string, f func(*driver.Context) error) {
	if err := o.wait(f); err != nil {
		panic(fmt.Errorf("cuda: %s: %w", what, err))
	}
}

// stop ends the owner after a last piece of work.
func (o *owner) stop(f func(*driver.Context) error) {
	o.work <- task{f: f, always: true}
	close(o.work)
	<-o.done
}
