package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"triax/train"
)

// progress shows a run step by step: one line kept up to date on a terminal, plain lines elsewhere.
type progress struct {
	out   io.Writer
	live  bool
	every int
	start time.Time
	drawn bool
}

func newProgress(out io.Writer, every int) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, live: ok && term.IsTerminal(int(f.Fd())), every: max(1, every), start: time.Now()}
}

func (p *progress) step(s train.Progress) {
	if !p.live && s.Step%p.every != 0 && s.Step != s.Steps && s.Eval == nil && !s.Skipped {
		return
	}
	left := time.Duration(float64(time.Since(p.start)) / float64(s.Step) * float64(s.Steps-s.Step))
	line := fmt.Sprintf("step %d/%d  loss %.4f  norm %.3f  lr %.2e  %.0f tokens/s  left %s",
		s.Step, s.Steps, s.Loss, s.Norm, s.Rate, float64(s.Tokens)/s.Took.Seconds(), left.Round(time.Second))
	if s.Eval != nil {
		line += fmt.Sprintf("  held-out loss %.4f", *s.Eval)
	}
	if s.Skipped {
		line += "  SKIPPED: the gradient norm is not finite"
	}
	if !p.live {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	p.drawn = true
	if s.Eval != nil || s.Skipped { // worth keeping
		fmt.Fprintln(p.out)
		p.drawn = false
	}
}

func (p *progress) end() {
	if p.drawn {
		fmt.Fprintln(p.out)
	}
}
