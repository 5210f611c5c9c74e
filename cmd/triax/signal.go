package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"triax/train"
)

// stopOnSignal closes stop with the first SIGINT or SIGTERM: the run ends its step, saves, and exits with exitStopped. The second one ends the process
// at once. done gives the signals back.
func stopOnSignal(note io.Writer) (stop <-chan struct{}, done func()) {
	signals, asked := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-over:
				return
			case s := <-signals:
				if !first {
					os.Exit(exitInterrupted)
				}
				fmt.Fprintf(note, "\n%v: ends this step, saves, and stops; once more to stop at once\n", s)
				close(asked)
			}
		}
	}()
	return asked, sync.OnceFunc(func() { signal.Stop(signals); close(over) })
}

// stoppedError is how a run that was asked to stop ends: well, but before its time.
type stoppedError struct{ res *train.Result }

func (e stoppedError) Error() string {
	where := "nothing is saved, as [checkpoint] says"
	if n := len(e.res.Saves); n > 0 {
		where = "saved in " + e.res.Saves[n-1].Path + "; triax resume " + e.res.Folder + " goes on"
	}
	return fmt.Sprintf("stopped after step %d: %s", e.res.Resumed+len(e.res.Loss), where)
}
