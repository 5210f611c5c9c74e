package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"triax/cuda/emu"
)

// TestNoDevice: a machine without a GPU says so and has an exit code of its own.
func TestNoDevice(t *testing.T) {
	t.Setenv("TRIAX_LIBCUDA", "/nowhere/libcuda.so.1")
	var out strings.Builder
	if code := run(&out, nil); code != exitNoDevice || !strings.Contains(out.String(), "NO GPU HERE, NOTHING WAS CHECKED") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// TestOnEmulator: every check runs through, on toy sizes, so that none fails for a reason of its own on the day there is a GPU.
func TestOnEmulator(t *testing.T) {
	l, _, err := emu.Cached()
	if errors.Is(err, emu.ErrNoCompiler) && os.Getenv("TRIAX_EMU") == "" {
		t.Skip("no g++: the device is not run on the emulator (apt install g++)")
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, paths := range map[string][]string{"TRIAX_LIBCUDA": l.Driver, "TRIAX_LIBNVRTC": l.Compiler, "TRIAX_LIBCUBLASLT": l.BLAS} {
		t.Setenv(name, paths[0])
	}
	var out strings.Builder
	if code := run(&out, []string{"-tiny", "-tests", ""}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"compiled and loaded", "weight gradient, added", "TB/s", "embedding gradient", "loss gradient", "adamw", "its gradient, heads of 128", "tokens/s", "all passed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	t.Log(out.String())
}

// TestFailures: a part that fails, or panics, or comes too late is told, and the others still run.
func TestFailures(t *testing.T) {
	old := checks
	defer func() { checks = old }()
	reached := 0
	checks = []check{
		{"breaks", 1e9, func(context.Context, *bench) error { return errors.New("it is broken") }},
		{"panics", 1e9, func(context.Context, *bench) error { panic("it is lost") }},
		{"works", 1e9, func(context.Context, *bench) error { reached++; return nil }},
	}
	var out strings.Builder
	if code := all(&bench{out: &out}, 1e9); code != exitFailed || reached != 1 {
		t.Errorf("exit code %d, reached %d", code, reached)
	}
	if code := all(&bench{out: &out}, 0); code != exitFailed || reached != 1 {
		t.Errorf("without time: exit code %d, reached %d", code, reached)
	}
	for _, want := range []string{"FAILED: it is broken", "FAILED: it is lost", "NOT REACHED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
