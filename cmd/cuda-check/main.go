// Command cuda-check proves and measures the NVIDIA device on a machine that has one, in eight minutes: conformance on fresh random inputs and
// poisoned memory, whole runs against the processor, ceilings of products and copies, what each kernel makes of them, and tokens/s of two models. It
// needs no Go on the machine: `make cuda-check` builds it and the test programs that it runs; start it in the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"triax/cuda"
	"triax/cuda/driver"
)

// Exit codes: 0 all passed, 1 something failed or was not reached in time, 2 a wrong flag, 4 there is no device to check.
const (
	exitFailed   = 1
	exitRequest  = 2
	exitNoDevice = 4
)

func main() { os.Exit(run(os.Stdout, os.Args[1:])) }

// bench is what all checks share.
type bench struct {
	out   io.Writer
	m     *cuda.Machine
	info  driver.Info
	size  sizes
	tests string // folder of test programs
	rate  rates  // measured so far
}

// rates are ceilings of this machine.
type rates struct {
	gemm   float64 // floating-point operations a second, bfloat16
	copied float64 // bytes a second, read and written both counted
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.out, "  "+format+"\n", args...) }

// check is one of the program's parts. It may take limit, and no longer than is left of the budget.
type check struct {
	name  string
	limit time.Duration
	run   func(ctx context.Context, b *bench) error
}

var checks = []check{
	{"compile kernels", time.Minute, compile},
	{"conformance, fresh inputs, poisoned memory", 2 * time.Minute, conformance},
	{"runs against the processor", 2 * time.Minute, runs},
	{"ceilings", time.Minute, ceilings},
	{"kernels", time.Minute, kernels},
	{"GPT-2 124M", 90 * time.Second, small},
	{"GPT-2 1.5B", 2 * time.Minute, large},
	{"PyTorch, compiled", 2 * time.Minute, torch},
}

func run(out io.Writer, args []string) int {
	f := flag.NewFlagSet("cuda-check", flag.ContinueOnError)
	f.SetOutput(out)
	tiny := f.Bool("tiny", false, "sizes for an emulated device: figures mean nothing")
	tests := f.String("tests", filepath.Join("bin", "tests"), "folder of the test programs that make cuda-check builds; empty runs none")
	budget := f.Duration("budget", 8*time.Minute, "time for everything")
	if err := f.Parse(args); err != nil {
		return exitRequest
	}
	b := &bench{out: out, tests: *tests, size: real}
	if *tiny {
		b.size = toy
	}
	var err error
	if b.m, err = cuda.Open(driver.Find(), ""); err == nil {
		var infos []driver.Info
		if infos, err = b.m.Devices(); err == nil {
			b.info = infos[0]
		}
	}
	if errors.Is(err, driver.ErrAbsent) || errors.Is(err, driver.ErrNoDevice) {
		fmt.Fprintf(out, "cuda-check: NO GPU HERE, NOTHING WAS CHECKED: %v\n", err)
		return exitNoDevice
	}
	if err != nil {
		fmt.Fprintf(out, "cuda-check: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(out, "%v\n%v\n", b.info, b.m)
	return all(b, *budget)
}

// all runs every check, whatever became of the others.
func all(b *bench, budget time.Duration) int {
	start, code := time.Now(), 0
	whole, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	for _, c := range checks {
		fmt.Fprintf(b.out, "\n== %s (%.0f s)\n", c.name, time.Since(start).Seconds())
		if whole.Err() != nil {
			fmt.Fprintln(b.out, "  NOT REACHED: the time is up")
			code = exitFailed
			continue
		}
		ctx, end := context.WithTimeout(whole, c.limit)
		err := guarded(ctx, b, c)
		end()
		if err != nil {
			fmt.Fprintf(b.out, "  FAILED: %v\n", err)
			code = exitFailed
		}
	}
	verdict := "all passed"
	if code != 0 {
		verdict = "something FAILED or was not reached, see above"
	}
	fmt.Fprintf(b.out, "\ncuda-check: %s, %.0f s\n", verdict, time.Since(start).Seconds())
	return code
}

// guarded turns a panic of the device into an error: the other checks go on, on a device of their own.
func guarded(ctx context.Context, b *bench, c check) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return c.run(ctx, b)
}
