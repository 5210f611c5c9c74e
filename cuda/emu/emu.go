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
	"crypto/sha256"
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

// Cached is Build into a folder of the user's cache, named by everything that the libraries are made of, for programs that come again.
// kernels is a folder beside them for what is compiled with them.
func Cached() (l driver.Libraries, kernels string, err error) {
	cc, err := exec.LookPath("g++")
	if err != nil {
		return l, "", ErrNoCompiler
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return l, "", fmt.Errorf("emulator: %w", err)
	}
	version, err := exec.Command(cc, "--version").Output()
	if err != nil {
		return l, "", fmt.Errorf("emulator: %s --version: %w", cc, err)
	}
	h := sha256.New()
	h.Write(version)
	if err := fs.WalkDir(sources, "src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sources.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	}); err != nil {
		return l, "", fmt.Errorf("emulator: %w", err)
	}
	dir := filepath.Join(base, "triax", fmt.Sprintf("emu-%x", h.Sum(nil)[:8]))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := buildOnce(dir); err != nil {
			return l, "", err
		}
	}
	return at(dir), filepath.Join(dir, "kernels"), nil
}

// buildOnce makes a folder whole or not at all: others may be making it too.
func buildOnce(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-*")
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	defer os.RemoveAll(part) // gone when all went well
	if err := build(part, dir); err != nil {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return fmt.Errorf("emulator: %w", err)
		}
	}
	return nil
}

// Build compiles the libraries into a folder, which must stay while they are used. There is none for NCCL.
func Build(dir string) (driver.Libraries, error) {
	if err := build(dir, dir); err != nil {
		return driver.Libraries{}, err
	}
	return at(dir), nil
}

// at are the libraries in a folder.
func at(dir string) driver.Libraries {
	list := func(name string) []string { return []string{filepath.Join(dir, name+".so")} }
	return driver.Libraries{Driver: list("driver"), Compiler: list("nvrtc"), BLAS: list("blas")}
}

// build compiles into a folder that will be at home when it is used.
func build(dir, home string) error {
	cc, err := exec.LookPath("g++")
	if err != nil {
		return ErrNoCompiler
	}
	src, err := fs.Sub(sources, "src")
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "src"), src); err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	words := fmt.Sprintf("-DWORDS=%q", filepath.Join(home, "src", "words.h"))
	for _, name := range []string{"driver", "nvrtc", "blas"} {
		cmd := exec.Command(cc, "-std=c++17", "-O2", "-fPIC", "-shared", "-ftls-model=initial-exec", words, "-o", filepath.Join(dir, name+".so"), filepath.Join(dir, "src", name+".cc"), "-ldl")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("emulator: %s: %w\n%s", name, err, text)
		}
	}
	return nil
}
