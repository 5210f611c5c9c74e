package nn

import (
	"fmt"
	"math"

	"triax/tensor"
)

// How the frequencies of rotary positions are changed for samples longer than those of pre-training.
const (
	RopeNone   = "none"
	RopeLinear = "linear" // all frequencies divided (Chen et al. 2023, §2.3)
	RopeLlama3 = "llama3" // the low ones divided, with a ramp between two wavelengths (Llama team 2024; Hugging Face's rope type of that name)
	RopeYaRN   = "yarn"   // a ramp over the pairs, and sharper attention (Peng et al. 2023, §3.2 and §3.4)
)

// RopeScalings lists the names.
var RopeScalings = []string{RopeNone, RopeLinear, RopeLlama3, RopeYaRN}

// Rotary turns queries and keys by their positions (Su et al. 2021, §3.4).
type Rotary struct {
	Freq  []float64 // [hd/2] radians a position, by pair
	Scale float64   // of the turned vectors: 1, but for YaRN
}

// NewRotary computes the frequencies of a resolved configuration.
func NewRotary(c Config) *Rotary {
	r := &Rotary{Freq: make([]float64, c.HeadDim/2), Scale: 1}
	for i := range r.Freq {
		r.Freq[i] = math.Pow(c.RopeBase, -2*float64(i)/float64(c.HeadDim))
	}
	switch c.RopeScaling {
	case RopeLinear:
		for i := range r.Freq {
			r.Freq[i] /= c.RopeFactor
		}
	case RopeLlama3:
		for i, f := range r.Freq {
			turns := float64(c.RopeOriginal) * f / (2 * math.Pi) // over a sample of pre-training
			keep := min(1, max(0, (turns-c.RopeLow)/(c.RopeHigh-c.RopeLow)))
			r.Freq[i] = f * (keep + (1-keep)/c.RopeFactor)
		}
	case RopeYaRN:
		r.Scale = c.RopeAttention
		// The pair that turns so many times over a sample of pre-training.
		pair := func(turns float64) float64 {
			return float64(c.HeadDim) * math.Log(float64(c.RopeOriginal)/(turns*2*math.Pi)) / (2 * math.Log(c.RopeBase))
		}
		lo, hi := max(0, math.Floor(pair(c.RopeHigh))), min(float64(c.HeadDim-1), math.Ceil(pair(c.RopeLow)))
		if lo == hi {
			hi += 0.001 // no ramp: the released code's way around a division by zero
		}
		for i, f := range r.Freq {
			divide := min(1, max(0, (float64(i)-lo)/(hi-lo)))
			r.Freq[i] = f * (1 - divide + divide/c.RopeFactor)
		}
	}
	return r
}

// Turn turns x [T heads*hd] in place; inverse is the transposed map, which takes gradients back. A nil Rotary does nothing.
func (r *Rotary) Turn(ctx *Ctx, x *tensor.Tensor, heads int, inverse bool) {
	if r == nil {
		return
	}
	ctx.Dev.Rope(x, ctx.Batch.Positions, heads, r.Freq, inverse)
	if r.Scale != 1 {
		ctx.Dev.Scale(x, r.Scale)
	}
}

func (c Config) resolvedRope() Config {
	if c.RopeScaling == "" {
		c.RopeScaling = RopeNone
	}
	or := func(v *float64, otherwise float64) {
		if *v == 0 {
			*v = otherwise
		}
	}
	switch c.RopeScaling {
	case RopeLlama3:
		or(&c.RopeLow, 1)
		or(&c.RopeHigh, 4)
	case RopeYaRN:
		or(&c.RopeLow, 1)
		or(&c.RopeHigh, 32)
		or(&c.RopeAttention, 0.1*math.Log(max(1, c.RopeFactor))+1)
	}
	return c
}

// Misfit is a value that a key of the configuration cannot have.
type Misfit struct {
	Field      string // "model.rope_factor"
	Value      any
	Rule, Hint string
}

// Error prints it on one line.
func (m *Misfit) Error() string {
	return fmt.Sprintf("%s = %v: %s; %s", m.Field, m.Value, m.Rule, m.Hint)
}

// CheckRope says what is wrong with the scaling of a resolved configuration; nil for nothing.
func (c Config) CheckRope() *Misfit {
	long := c.RopeScaling == RopeLlama3 || c.RopeScaling == RopeYaRN
	of := fmt.Sprintf("of rope_scaling %q", c.RopeScaling)
	switch {
	case c.RopeScaling == RopeNone:
		if c.RopeFactor != 0 || c.RopeOriginal != 0 || c.RopeLow != 0 || c.RopeHigh != 0 || c.RopeAttention != 0 {
			return &Misfit{"model.rope_scaling", c.RopeScaling, "rope_factor and its like belong to a scaling", `use "llama3"`}
		}
	case c.RopeScaling != RopeLinear && !long:
		return &Misfit{"model.rope_scaling", c.RopeScaling, fmt.Sprintf("want one of %v", RopeScalings), `use "none"`}
	case c.Family != Llama:
		return &Misfit{"model.rope_scaling", c.RopeScaling, fmt.Sprintf("family %q has no rotary positions", c.Family), `use "none"`}
	case !(c.RopeFactor >= 1 && c.RopeFactor <= 1e6):
		return &Misfit{"model.rope_factor", c.RopeFactor, of + ": want 1 to 1e6", "8 is usual"}
	case long && c.RopeOriginal < 1:
		return &Misfit{"model.rope_original", c.RopeOriginal, of + ": want the tokens of a sample in pre-training", "8192 is Llama 3's"}
	case long && !(c.RopeLow > 0 && c.RopeHigh > c.RopeLow && c.RopeHigh < 1e12):
		return &Misfit{"model.rope_low", c.RopeLow, fmt.Sprintf("%s: want above 0 and below rope_high = %g", of, c.RopeHigh), "1 is usual"}
	case long && !(c.RopeBase > 1):
		return &Misfit{"model.rope_base", c.RopeBase, of + ": want above 1", "10000 is usual"}
	case !(c.RopeAttention >= 0 && c.RopeAttention <= 100):
		return &Misfit{"model.rope_attention", c.RopeAttention, of + ": want 0 to 100", "0 is YaRN's own"}
	}
	return nil
}
