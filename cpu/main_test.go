package cpu

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain: a closed device leaves no thread behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
