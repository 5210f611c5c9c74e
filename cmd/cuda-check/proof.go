package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"triax/cuda"
	"triax/tensor"
)

// compile makes all kernels from their text, with nothing in any cache.
func compile(_ context.Context, b *bench) error {
	for _, float := range []tensor.DType{tensor.F32, tensor.BF16} {
		start := time.Now()
		d, err := b.m.Device(cuda.Options{Float: float})
		if err != nil {
			return err
		}
		b.say("%s: compiled and loaded in %.1f s", d.Name(), time.Since(start).Seconds())
		d.Close()
	}
	return nil
}

// conformance is the suite that every device passes, on this one.
func conformance(ctx context.Context, b *bench) error {
	return b.test(ctx, "cuda", ".", "TestConformance")
}

// runs are whole trainings beside the processor's: uncut, and eight ranks that share the device by way of host memory.
func runs(ctx context.Context, b *bench) error {
	return b.test(ctx, "train", "train", "TestCUDA")
}

// test runs tests of a program that was built before, in a folder of the repository.
func (b *bench) test(ctx context.Context, name, folder, pattern string) error {
	if b.tests == "" {
		b.say("left out, as was asked")
		return nil
	}
	program, err := filepath.Abs(filepath.Join(b.tests, name+".test"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w: make cuda-check builds it", err)
	}
	cmd := exec.CommandContext(ctx, program, "-test.run", "^("+pattern+")", "-test.v")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "TRIAX_CUDA=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	failed, err := b.told(out)
	err = errors.Join(err, cmd.Wait())
	if ctx.Err() != nil {
		return fmt.Errorf("%s: stopped: it took longer than this part may", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; tests that failed: %v", name, err, failed)
	}
	return nil
}

// told shows what tests measured, and everything once one has failed.
func (b *bench) told(out io.Reader) (failed []string, err error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		text := strings.TrimSpace(line)
		if _, name, ok := strings.Cut(text, "--- FAIL: "); ok {
			failed = append(failed, name)
		}
		if strings.Contains(text, "_test.go:") || strings.Contains(text, "run.go:") || strings.HasPrefix(text, "panic") || len(failed) > 0 {
			b.say("%s", text)
		}
	}
	return failed, lines.Err()
}
