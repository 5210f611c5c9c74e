// Package emu makes libraries that stand in for NVIDIA's, whose devices are this processor: the same kernels' text is compiled by g++ and run on fibres, a thread
// of a block each, with barriers, warp shuffles and shared memory. There is one device for each order in which threads that can go on do so: a kernel
// without races gives the same bits on all of them.
//
//	kernels/*.cu ──compiler.so (g++)──▶ module ──driver.so──▶ fibres on the CPU
//	                 as NVRTC                     as libcuda
//
// What a processor can prove this way: indices, bounds, barriers, sums' order, packing of arguments. What only a device can prove: speed, memory ordering between
// blocks, and that NVIDIA's compiler takes the text.
package emu

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"triax/cuda/driver"
)

//go:embed src
var sources embed.FS

// ErrNoCompiler: the emulator needs g++.
var ErrNoCompiler = errors.New("g++ is not installed")

// Build compiles the libraries into a folder, which must stay while they are used. There is none for NCCL.
func Build(dir string) (driver.Libraries, error) {
	cc, err := exec.LookPath("g++")
	if err != nil {
		return driver.Libraries{}, ErrNoCompiler
	}
	src, err := fs.Sub(sources, "src")
	if err != nil {
		return driver.Libraries{}, err
	}
	if err := os.CopyFS(filepath.Join(dir, "src"), src); err != nil {
		return driver.Libraries{}, fmt.Errorf("emulator: %w", err)
	}
	make := func(name string) ([]string, error) {
		out := filepath.Join(dir, name+".so")
		words := fmt.Sprintf("-DWORDS=%q", filepath.Join(dir, "src", "words.h"))
		cmd := exec.Command(cc, "-std=c++17", "-O2", "-fPIC", "-shared", words, "-o", out, filepath.Join(dir, "src", name+".cc"), "-ldl")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("emulator: %s: %w\n%s", name, err, text)
		}
		return []string{out}, nil
	}
	var l driver.Libraries
	for _, x := range []struct {
		name string
		to   *[]string
	}{{"driver", &l.Driver}, {"nvrtc", &l.Compiler}, {"blas", &l.BLAS}} {
		if *x.to, err = make(x.name); err != nil {
			return driver.Libraries{}, err
		}
	}
	return l, nil
}
