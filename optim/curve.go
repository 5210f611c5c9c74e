package optim

import (
	"fmt"
	"math"
)

// Curve is the learning rate as a function of the step alone, so a resumed run needs no more than its step.
type Curve struct {
	Shape  string  // "constant", "linear" or "cosine"
	Peak   float64 // reached at the end of warm-up
	Floor  float64 // reached at the last step by linear and cosine
	Warmup int     // steps of linear rise; the first step has Peak/Warmup
	Steps  int     // of the whole run; at least 1
}

// NewCurve is the curve of a validated section for a run of the given number of steps.
func NewCurve(c Config, steps int) Curve {
	return Curve{Shape: c.Curve, Peak: c.LR, Floor: c.MinLR, Warmup: c.Warmup, Steps: steps}
}

// At is the rate of a step, counted from 1. After the last step it stays where it ended.
// The cosine is half a period (Loshchilov & Hutter 2017, eq. 5, without restarts).
func (c Curve) At(step int) float64 {
	if step < 1 {
		panic(fmt.Sprintf("optim: learning rate of step %d; steps count from 1", step))
	}
	if step <= c.Warmup {
		return c.Peak * float64(step) / float64(c.Warmup)
	}
	if c.Shape == "constant" {
		return c.Peak
	}
	// Progress runs from 0 at the end of warm-up (or at step 1 without one) to 1 at the last step.
	from := max(c.Warmup, 1)
	progress := 1.0
	if c.Steps > from {
		progress = min(float64(step-from)/float64(c.Steps-from), 1)
	}
	if step == from {
		progress = 0
	}
	left := 1 - progress
	if c.Shape == "cosine" {
		left = (1 + math.Cos(math.Pi*progress)) / 2
	}
	return c.Floor + (c.Peak-c.Floor)*left
}

func (c Curve) String() string {
	return fmt.Sprintf("%s %g → %g over %d steps, warm-up %d", c.Shape, c.Peak, c.Floor, c.Steps, c.Warmup)
}
