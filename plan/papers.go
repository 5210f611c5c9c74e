package plan

import "triax/nn"

// The closed formulas of papers, for comparison with what is read off the layers.

// Korthikanti is the bytes of 16-bit activations that Megatron's layer keeps for one microbatch of b samples, over t tensor ranks
// (Korthikanti et al. 2022, table 2): sbh(34 + 5as/h) and its cuts. selective drops the terms of the scores, as tiled attention does too; full keeps
// the layer's input only.
func Korthikanti(m nn.Config, b, t int, sequence bool, mode string) float64 {
	s, h, a := float64(m.Sequence), float64(m.Width), float64(m.Heads)
	sbh, tt := s*float64(b)*h, float64(t)
	if mode == nn.RecomputeFull {
		return 2 * sbh
	}
	scores := 5 * a * s / (h * tt)
	if mode == nn.RecomputeSelective {
		scores = 0
	}
	if sequence {
		return sbh * (34/tt + scores)
	}
	return sbh * (10 + 24/tt + scores)
}

// InFlight is how many whole models' worth of layers the first rank of an interleaved 1F1B keeps: 1 + (p-1)/(pv), and 1 without interleaving
// (Narayanan et al. 2021, §2.2.2; Korthikanti et al. 2022, §4.2.3).
func InFlight(p, v int) float64 {
	if v == 1 {
		return 1
	}
	return 1 + float64(p-1)/float64(p*v)
}

// StateBytes is the bytes a parameter costs a rank in mixed precision, AdamW: 2 of weight, grad of gradient, 12 of master copy and moments, each
// over the d ranks from the ZeRO stage on that shards it (Rajbhandari et al. 2020, §5). grad is 2, or 4 where gradients are kept in fp32.
func StateBytes(stage, d int, grad float64) float64 {
	w, s, n := 2.0, 12.0, float64(d)
	if stage >= 1 {
		s /= n
	}
	if stage >= 2 {
		grad /= n
	}
	if stage >= 3 {
		w /= n
	}
	return w + grad + s
}
