package alloctest

import "testing"

// failing records that a test failed, and goes on.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Fatalf(string, ...any) { f.failed = true }

var sink []byte

// TestLinear: what grows with the input passes, what does not fails, also where it is freed at once.
func TestLinear(t *testing.T) {
	for _, c := range []struct {
		size, bytes, times int
		fails              bool
	}{{0, 100, 1, false}, {1 << 20, 100 << 20, 1, false}, {10, 16 << 20, 1, true}, {10, 1 << 20, 20, true}} {
		f := &failing{TB: t}
		Linear(f, c.size, func() {
			for range c.times {
				sink = make([]byte, c.bytes)
			}
		})
		if f.failed != c.fails {
			t.Errorf("%+v: failed %v", c, f.failed)
		}
	}
}
