package cuda

import (
	"errors"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"triax/cuda/driver"
	"triax/cuda/emu"
)

// TestMain: a closed device leaves no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var built struct {
	once sync.Once
	m    *Machine
	err  error
}

// onGPU says whether the tests are to run on this machine's own device.
func onGPU() bool { return os.Getenv("TRIAX_CUDA") != "" }

// testMachine is NVIDIA's libraries with TRIAX_CUDA, else the emulated ones.
func testMachine(t testing.TB) *Machine {
	t.Helper()
	built.once.Do(func() {
		if onGPU() {
			built.m, built.err = Open(driver.Find(), "")
			return
		}
		l, kernels, err := emu.Cached()
		if built.err = err; err == nil {
			built.m, built.err = Open(l, kernels)
		}
	})
	unbuilt := errors.Is(built.err, emu.ErrNoCompiler) || errors.Is(built.err, driver.ErrAbsent)
	if unbuilt && !onGPU() && os.Getenv("TRIAX_EMU") == "" {
		t.Skipf("the device is not run on the emulator, which needs g++ and a build with cgo: %v", built.err)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.m
}

// testDevice is a device of testMachine, closed when the test ends.
func testDevice(t testing.TB, opts Options) *Device {
	t.Helper()
	d, err := testMachine(t).Device(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}
