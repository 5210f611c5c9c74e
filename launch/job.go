package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Job is processes of a command, started together.
type Job struct {
	Starter  Starter
	Ranks    int
	HostFile string // "" for this host
	Command  []string
	Out, Err io.Writer
}

// Ended is how a job ended badly.
type Ended struct {
	Code int
	Lost string // who ended or fell silent first, where that is known
}

func (e *Ended) Error() string {
	if e.Lost == "" {
		return fmt.Sprintf("the processes ended with code %d", e.Code)
	}
	return fmt.Sprintf("the processes ended with code %d: %s", e.Code, e.Lost)
}

// A launcher that has lost a host waits for it for good, so it is ended Lateness after a process has said that it failed: first asked, then after
// grace killed, with all that it has started here.
const (
	Lateness = 10 * time.Second
	grace    = 3 * time.Second
)

// Run starts the processes and waits for their end. When ctx ends the launcher is asked to end them. A bad end is an *Ended.
func (j Job) Run(ctx context.Context) error {
	crowded := j.Ranks > runtime.NumCPU()
	c := exec.Command(j.Starter.Path, j.Starter.Args(j.Ranks, j.HostFile, crowded, os.Geteuid() == 0, j.Command)...)
	apart(c)
	over := make(chan struct{})
	heard := newHeard(func() {
		go after(over, Lateness, func() { stop(c.Process, over) })
	})
	lines, err := openExchange(heard)
	if err != nil {
		return err
	}
	defer lines.close()
	c.Env = append(os.Environ(), lines.variable())
	c.Stdout, c.Stderr, c.WaitDelay = &ear{heard: heard, to: j.Out}, &ear{heard: heard, to: j.Err}, time.Second
	if err := c.Start(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	go func() {
		select {
		case <-ctx.Done():
			_ = c.Process.Signal(os.Interrupt) // it may just have ended
		case <-over:
		}
	}()
	err = c.Wait()
	close(over)
	if err == nil {
		return nil
	}
	_ = killGroup(c.Process) // whom it left behind
	if c.ProcessState == nil || !errors.As(err, new(*exec.ExitError)) && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("launch: %w", err)
	}
	return &Ended{Code: c.ProcessState.ExitCode(), Lost: heard.Lost()}
}

// stop asks a launcher to end, and then ends it with its group.
func stop(p *os.Process, over <-chan struct{}) {
	if p.Signal(os.Interrupt) == nil { // else it has ended
		after(over, grace, func() { _ = killGroup(p) })
	}
}

func after(over <-chan struct{}, d time.Duration, f func()) {
	select {
	case <-time.After(d):
		f()
	case <-over:
	}
}
