package plan

import (
	"fmt"
	"strings"

	"triax/comm"
)

// Bytes prints in binary units.
func Bytes(x float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if x >= u.size || x <= -u.size {
			return fmt.Sprintf("%.2f %s", x/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", x)
}

// Seconds prints a time at a fitting scale.
func Seconds(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.3f s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.2f ms", s*1e3)
	}
	return fmt.Sprintf("%.1f us", s*1e6)
}

// String is the plan for people.
func (p *Plan) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	c := p.Device
	line("%s on %d x %s (%s)", p.Layout, p.Ranks, p.Cluster, c.Precision)
	line("model       %.3gB parameters, %.4g TFLOPs a step of %d tokens (multiply-add = 2, causal attention half)",
		float64(p.Parameters)/1e9, p.FLOPs/1e12, p.Tokens)
	fit := fmt.Sprintf("fits, %s to spare", Bytes(p.Room))
	if !p.Fits {
		fit = fmt.Sprintf("DOES NOT FIT: %s missing", Bytes(-p.Room))
	}
	line("memory      %s of %s at pipeline rank %d: %s", Bytes(p.Memory[p.Worst].Peak), Bytes(c.Memory), p.Worst, fit)
	for _, r := range p.shown() {
		m := p.Memory[r]
		line("  rank %-4d weights %s, gradients %s, states %s, activations %s (%d in flight), buffers %s, slack %s = %s", r,
			Bytes(m.Weights), Bytes(m.Gradients), Bytes(m.States), Bytes(m.Activations), p.Schedule[r], Bytes(m.Buffers), Bytes(m.Slack), Bytes(m.Peak))
		if m.Offloaded > 0 {
			line("            and %s of states in files", Bytes(m.Offloaded))
		}
	}
	s := p.Step
	line("step        %s: %.0f tokens/s, MFU %.1f%%, HFU %.1f%%", Seconds(s.Seconds), p.TokensPerS, 100*p.MFU, 100*p.HFU)
	line("  compute %s, inside layers %s, data axes %s, update %s, idle %s", Seconds(s.Compute), Seconds(s.Tensor), Seconds(s.Data), Seconds(s.Optimizer), Seconds(s.Idle))
	line("bubble      %.1f%% of the whole step, barrier included; %.1f%% between each rank's first and last op", 100*s.Bubble, 100*s.DeviceBubble)
	line("  idle by cause: warm-up %s, waiting for a peer %s, transfer %s, drain %s", Seconds(s.WarmUp), Seconds(s.Peer), Seconds(s.Transfer), Seconds(s.Drain))
	line("traffic of one step, all ranks")
	for _, e := range p.Traffic {
		if e.Kind != comm.KindRecv {
			line("  %-12s %-14s %9d calls  %12s", e.Axis, e.Kind, e.Calls, Bytes(float64(e.Bytes)))
		}
	}
	if c.HourPrice > 0 {
		line("price       %.2f for a billion tokens", 1e9/p.TokensPerS/3600*c.HourPrice*float64(p.Ranks))
	}
	if c.Watts > 0 {
		line("energy      %.1f kWh for a billion tokens", 1e9/p.TokensPerS/3.6e6*c.Watts*float64(p.Ranks))
	}
	for _, w := range p.Warnings {
		line("note        %s", w)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shown is the pipeline ranks worth a line: the first, the last, and the worst.
func (p *Plan) shown() (out []int) {
	for r := range p.Memory {
		if r == 0 || r == len(p.Memory)-1 || r == p.Worst {
			out = append(out, r)
		}
	}
	return out
}
