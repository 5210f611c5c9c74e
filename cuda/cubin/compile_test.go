package cubin

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"triax/cuda/driver"
	"triax/cuda/kernels"
)

var update = flag.Bool("update", false, "write the modules of testdata with the compiler that is found")

// compiler is NVIDIA's run-time compiler, where there is one.
func compiler(t *testing.T) *driver.Compiler {
	t.Helper()
	c, err := driver.LoadCompiler(driver.Find().Compiler)
	if errors.Is(err, driver.ErrAbsent) {
		t.Skipf("SKIPPED: kernels are not held against NVIDIA's compiler: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("NVRTC %v, %s", c.Version, c.Path)
	return c
}

// TestKernelsCompile: NVIDIA's compiler takes every kernel, for the A100's and the H100's architecture, in both storage types.
func TestKernelsCompile(t *testing.T) {
	c := compiler(t)
	all, err := Compile(c, []string{"sm_80", "sm_90"})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + Report(all))
	for _, want := range kernels.All() {
		forms := 0
		for _, m := range all {
			if m.File == want.File && slices.ContainsFunc(m.Kernels, func(k Kernel) bool { return k.Name == want.Name && k.Registers > 0 && k.Registers <= 255 }) {
				forms++
			}
		}
		n := 4
		if kernels.Plain(want.File) {
			n = 2
		}
		if forms != n {
			t.Errorf("%v: %d forms compiled, want %d", want, forms, n)
		}
	}
}

// TestCompileFaults: a text that does not compile is an error with its line, and a kernel that needs more registers than it may have spills.
func TestCompileFaults(t *testing.T) {
	c := compiler(t)
	bad := Module{File: "bad.cu", Arch: "sm_80"}
	if err := bad.compile(c, "extern \"C\" __global__ void k(float* y) {\n  y[0] = nothing;\n}"); err == nil || !strings.Contains(err.Error(), "bad.cu(2)") {
		t.Errorf("a bad text: %v", err)
	}
	m := Module{File: "spill.cu", Arch: "sm_80"}
	if err := m.compile(c, spilling); err != nil {
		t.Fatal(err)
	}
	checkSpilling(t, m.Kernels[0])
	if m.Kernels[0].SpillStores == 0 || m.Kernels[0].SpillLoads == 0 {
		t.Errorf("no spills: %+v", m.Kernels[0])
	}
	if !*update {
		return
	}
	for _, arch := range []string{"sm_80", "sm_90"} {
		image, err := c.Compile("spill.cu", spilling, kernels.Options(arch, false))
		if err == nil {
			err = os.WriteFile("testdata/spilling-"+arch+".cubin", image, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// spilling may have 32 registers, and keeps 64 values and a block's 320 bytes.
const spilling = `extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* y, const float* x) {
  __shared__ float s[80];
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; i++) v[i] = x[i * blockDim.x + threadIdx.x];
  if (threadIdx.x < 80) s[threadIdx.x] = v[5];
  __syncthreads();
#pragma unroll 1
  for (int j = 0; j < 64; j++) {
    float t = s[j];
#pragma unroll
    for (int i = 0; i < 64; i++) t = t * v[i] + v[(i + 1) % 64];
    y[j * blockDim.x + threadIdx.x] = t;
  }
}
`

func checkSpilling(t *testing.T, k Kernel) {
	t.Helper()
	if k.Name != "spilling" || k.Registers != 32 || k.Stack < 100 || k.Shared != 320 || k.Code < 1000 {
		t.Errorf("%+v", k)
	}
}

// TestRead: modules that were compiled once are read, and what is not a module is refused.
func TestRead(t *testing.T) {
	for _, arch := range []string{"sm_80", "sm_90"} {
		image, err := os.ReadFile("testdata/spilling-" + arch + ".cubin")
		if err != nil {
			t.Fatal(err)
		}
		list, err := Read(image)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %d kernels", arch, err, len(list))
		}
		checkSpilling(t, list[0])
		for n := 0; n < len(image); n += 7 { // cut off anywhere
			if _, err := Read(image[:n]); err == nil && n < len(image)/2 {
				t.Errorf("%s: %d bytes of %d are taken for a module", arch, n, len(image))
			}
		}
	}
	own, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		if _, err := Read(own); err == nil || !strings.Contains(err.Error(), "want 190") {
			t.Errorf("a program of this machine: %v", err)
		}
	}
}

// TestReadLog: functions that kernels call have lines of their own, which are not the kernel's.
func TestReadLog(t *testing.T) {
	log := `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for __internal_trig
    40 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers
`
	got := ReadLog(log)
	if got["one"] != (Kernel{"one", 30, 16, 128, 0, 12, 8}) || got["two"] != (Kernel{Name: "two", Registers: 12}) || len(got) != 2 {
		t.Errorf("%+v", got)
	}
}
