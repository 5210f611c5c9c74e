package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"triax/cuda/driver"
	"triax/cuda/kernels"
)

// Machine is NVIDIA's libraries, opened, and what has been compiled with them. Devices of one machine share it.
type Machine struct {
	driver   *driver.Driver
	compiler *driver.Compiler
	blas     *driver.BLAS
	cache    string

	mu     sync.Mutex
	images map[string]*image
}

// image is a compiled module; its lock is held while it is made, so that ranks compile each file once.
type image struct {
	mu   sync.Mutex
	data []byte
}

// Open opens the libraries. cache is a folder for compiled kernels, which need seconds to make; "" keeps them in memory only. Without a
// library the error is driver.ErrAbsent, with one and no device driver.ErrNoDevice.
func Open(l driver.Libraries, cache string) (*Machine, error) {
	m := &Machine{cache: cache, images: map[string]*image{}}
	var err error
	if m.driver, err = driver.Load(l.Driver); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if m.compiler, err = driver.LoadCompiler(l.Compiler); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if m.blas, err = driver.LoadBLAS(l.BLAS); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	return m, nil
}

// Bfloat16 says whether a device multiplies it: since compute capability 8.0.
func Bfloat16(info driver.Info) bool { return info.Major >= 8 }

// Devices describes the devices.
func (m *Machine) Devices() ([]driver.Info, error) { return m.driver.Devices() }

// compile is a file's module for an architecture.
func (m *Machine) compile(file string, bf16 bool, arch string) ([]byte, error) {
	source, options := kernels.Source(file), kernels.Options(arch, bf16)
	h := sha256.New()
	fmt.Fprintf(h, "%s %v %v\n%s", m.compiler.Path, m.compiler.Version, options, source)
	key := hex.EncodeToString(h.Sum(nil))
	m.mu.Lock()
	im := m.images[key]
	if im == nil {
		im = &image{}
		m.images[key] = im
	}
	m.mu.Unlock()
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.data != nil {
		return im.data, nil
	}
	path := filepath.Join(m.cache, key+".cubin")
	if m.cache != "" {
		switch b, err := os.ReadFile(path); {
		case err == nil:
			im.data = b
			return b, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("compiled kernels: %w", err)
		}
	}
	b, err := m.compiler.Compile(file, source, options)
	if err != nil {
		return nil, err
	}
	if m.cache != "" {
		if err := keep(path, b); err != nil {
			return nil, fmt.Errorf("compiled kernels: %w", err)
		}
	}
	im.data = b
	return b, nil
}

// keep writes a file whole or not at all: other processes may look for it meanwhile.
func keep(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// String prints the libraries: "driver 12.9 of libcuda.so.1, compiler 12.9 of ..., products 120900 of ...".
func (m *Machine) String() string {
	return fmt.Sprintf("driver %v of %s, compiler %v of %s, products %d of %s", m.driver.Version, m.driver.Path, m.compiler.Version, m.compiler.Path, m.blas.Version, m.blas.Path)
}
