package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/cobra"
)

// profiles are where Go's own profiles of a run go.
type profiles struct{ cpu, trace string }

func (p *profiles) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile here, for go tool pprof")
	cmd.Flags().StringVar(&p.trace, "trace", "", "write an execution trace here, for go tool trace")
}

// start begins what was asked for; the function it returns ends it.
func (p *profiles) start() (stop func() error, err error) {
	var ends []func() error
	stop = func() error {
		var errs []error
		for _, end := range ends {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}
	begin := func(path string, run func(*os.File) error, end func()) error {
		if path == "" {
			return nil
		}
		f, err := os.Create(path)
		if err != nil {
			return requestError{fmt.Errorf("profile: %w", err)}
		}
		if err := run(f); err != nil {
			f.Close()
			return fmt.Errorf("profile: %w", err)
		}
		ends = append(ends, func() error { end(); return f.Close() })
		return nil
	}
	err = begin(p.cpu, func(f *os.File) error { return pprof.StartCPUProfile(f) }, pprof.StopCPUProfile)
	if err == nil {
		err = begin(p.trace, func(f *os.File) error { return trace.Start(f) }, trace.Stop)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}
