// Package alloctest bounds what readers of files allocate: a file of a few bytes that speaks of terabytes must be refused before room for them is made.
package alloctest

import (
	"runtime"
	"testing"
)

// PerByte is how many bytes a reader may allocate, in all, for each byte that it is given. A JSON object of empty objects costs a decoder about
// fifty; the bound is there to tell what grows with a file from what grows with a number in it.
const PerByte = 256

// fixed is what a reader may allocate whatever its input: tables, compiled patterns, and what the testing goroutines do beside it.
const fixed = 4 << 20

// Linear fails t where read allocates more than PerByte bytes for each of size, beside a fixed sum. All that is allocated counts, also what was freed
// meanwhile, in all goroutines.
func Linear(t testing.TB, size int, read func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(size)*PerByte+fixed; got > most {
		t.Fatalf("%d bytes allocated for %d bytes of input, want at most %d", got, size, most)
	}
}
