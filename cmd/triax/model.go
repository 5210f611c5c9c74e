package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"triax/checkpoint"
	"triax/configs"
	"triax/hf"
	"triax/train"
)

// model is what a command that uses a trained model was given: a folder of a Hugging Face model, a run, or one of its checkpoints.
type model struct {
	cfg   *configs.Config
	opts  train.Options
	saved *checkpoint.Checkpoint // nil for a Hugging Face folder
}

func (m *model) close() error {
	if m.saved == nil {
		return nil
	}
	return m.saved.Close()
}

// longest is the tokens of a sample where a folder's model could take more and the request does not say.
const longest = 1024

// openModel finds out what path is, and applies the flags to the configuration that it comes with.
func openModel(cmd *cobra.Command, path string) (*model, error) {
	overrides, err := overridesOf(cmd)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, requestError{err}
	}
	if _, err := os.Stat(filepath.Join(path, "config.json")); err == nil {
		c, err := hf.ReadConfig(path)
		if err != nil {
			return nil, requestError{fmt.Errorf("%s: %w", path, err)}
		}
		shape, err := c.Shape()
		if err != nil {
			return nil, requestError{fmt.Errorf("%s: %w", path, err)}
		}
		text := fmt.Sprintf("[model]\nfrom = %q\nsequence = %d\n[train]\neval_batches = 0\n[data]\nheld_out = 0\n", path, min(longest, max(1, shape.Positions)))
		cfg, err := configs.Parse([]byte(text), overrides)
		return &model{cfg: cfg}, err
	}
	c, err := checkpointFrom(cmd.Context(), cmd.ErrOrStderr(), path, "")
	if err != nil {
		return nil, requestError{fmt.Errorf("%s: neither a run or checkpoint, nor a folder with config.json: %w", path, err)}
	}
	cfg, err := configs.Parse([]byte(c.Config), overrides)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &model{cfg: cfg, saved: c, opts: train.Options{Weights: c.Source(checkpoint.Weight)}}, nil
}
