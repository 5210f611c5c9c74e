package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// torch trains the same small model with PyTorch, compiled, in bfloat16, in the same minutes on the same device, and ours once more beside it.
func torch(ctx context.Context, b *bench) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		b.say("no python3 here: no ratio")
		return nil
	}
	var why bytes.Buffer
	ask := exec.CommandContext(ctx, python, "-c", "import torch; assert torch.cuda.is_available(), 'PyTorch sees no device'")
	ask.Stderr = &why
	if err := ask.Run(); err != nil {
		lines := bytes.Split(bytes.TrimSpace(why.Bytes()), []byte("\n"))
		b.say("no PyTorch for this device here, so no ratio: %s", lines[len(lines)-1])
		return nil
	}
	m := b.size.small
	args := []string{filepath.Join("tools", "bench", "torch_step.py"), "--device", "cuda", "--bf16", "--compile"}
	for name, n := range map[string]int{"layers": m.layers, "width": m.width, "heads": m.heads, "vocab": m.vocab, "seq": m.sequence, "batch": m.batch, "steps": m.steps + 5} {
		args = append(args, "--"+name, fmt.Sprint(n))
	}
	cmd := exec.CommandContext(ctx, python, args...)
	raw, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return err
	}
	var theirs struct {
		Version    string  `json:"version"`
		TokensPerS float64 `json:"tokens_per_s"`
		StepMS     float64 `json:"step_ms"`
	}
	if err := json.Unmarshal(raw, &theirs); err != nil {
		return fmt.Errorf("what PyTorch's script says: %w", err)
	}
	b.say("PyTorch %s, compiled: %.1f ms, %.0f tokens/s", theirs.Version, theirs.StepMS, theirs.TokensPerS)
	ours, err := b.train(ctx, m)
	if err != nil {
		return err
	}
	b.say("ours is %.2f of PyTorch's", ours.TokensPerS/theirs.TokensPerS)
	return nil
}
