package driver

import (
	"errors"
	"strings"
	"testing"
)

// TestAbsent: no library is a state of its own, that names what was tried.
func TestAbsent(t *testing.T) {
	_, err := Load([]string{"/nowhere/libcuda.so.1"})
	if !errors.Is(err, ErrAbsent) || errors.Is(err, ErrNoDevice) {
		t.Errorf("%v", err)
	}
	if _, err := LoadCompiler([]string{"/nowhere/libnvrtc.so"}); !errors.Is(err, ErrAbsent) {
		t.Errorf("%v", err)
	}
}

// TestFind: what the environment names and nothing else; else the loader's search, then toolkits, then wheels.
func TestFind(t *testing.T) {
	env := map[string]string{"TRIAX_LIBCUDA": "/mine.so", "CUDA_HOME": "/toolkit", "VIRTUAL_ENV": "/venv"}
	var asked []string
	l := find(func(k string) string { return env[k] }, func(p string) []string { asked = append(asked, p); return []string{strings.ReplaceAll(p, "*", "X")} })
	if len(l.Driver) != 1 || l.Driver[0] != "/mine.so" {
		t.Errorf("driver %v", l.Driver)
	}
	if l.Compiler[0] != "libnvrtc.so.13" || len(l.Compiler) < 10 {
		t.Errorf("compiler %v", l.Compiler)
	}
	toolkit, wheel := -1, -1
	for i, p := range l.BLAS {
		if strings.HasPrefix(p, "/toolkit/lib64") && toolkit < 0 {
			toolkit = i
		}
		if strings.HasPrefix(p, "/venv/") && wheel < 0 {
			wheel = i
		}
	}
	if toolkit < 0 || wheel < toolkit || len(asked) == 0 {
		t.Errorf("toolkit at %d, wheel at %d of %v", toolkit, wheel, l.BLAS)
	}
}
