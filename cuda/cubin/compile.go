package cubin

import (
	"errors"
	"fmt"
	"sync"

	"triax/cuda/driver"
	"triax/cuda/kernels"
)

// Module is one source, compiled.
type Module struct {
	File    string
	Arch    string // "sm_90"
	BF16    bool   // the storage type; of no meaning for a plain file
	Kernels []Kernel
}

// Compile compiles every source for each architecture and storage type, and holds what the module says against what the log says. The
// error lists every source that does not compile.
func Compile(c *driver.Compiler, archs []string) ([]Module, error) {
	var all []Module
	for _, arch := range archs {
		for _, file := range kernels.Files() {
			all = append(all, Module{File: file, Arch: arch})
			if !kernels.Plain(file) {
				all = append(all, Module{File: file, Arch: arch, BF16: true})
			}
		}
	}
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				errs[i] = all[i].compile(c, kernels.Source(all[i].File))
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	return all, errors.Join(errs...)
}

func (m *Module) compile(c *driver.Compiler, source string) error {
	image, log, err := c.CompileLog(m.File, source, append(kernels.Options(m.Arch, m.BF16), Verbose))
	if err == nil {
		m.Kernels, err = Read(image)
	}
	if err != nil {
		return fmt.Errorf("%s for %s: %w", m.File, m.Arch, err)
	}
	said := ReadLog(log)
	for i, k := range m.Kernels {
		s, ok := said[k.Name]
		if !ok {
			return fmt.Errorf("%s for %s: the log does not name %s", m.File, m.Arch, k.Name)
		}
		if s.Registers != k.Registers || s.Shared != k.Shared {
			return fmt.Errorf("%s for %s: %s has %d registers and %d bytes of shared memory by the module, %d and %d by the log", m.File, m.Arch, k.Name, k.Registers, k.Shared, s.Registers, s.Shared)
		}
		m.Kernels[i].SpillStores, m.Kernels[i].SpillLoads = s.SpillStores, s.SpillLoads
	}
	return nil
}
