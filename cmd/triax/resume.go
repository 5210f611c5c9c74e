package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"triax/checkpoint"
	"triax/configs"
)

// checkpointFrom opens what --resume names: "latest" is the newest good checkpoint of the run's folder, or nothing where it has none; else a
// checkpoint's folder, or a run's.
func checkpointFrom(ctx context.Context, note io.Writer, name, run string) (*checkpoint.Checkpoint, error) {
	latest := func(dir string) (*checkpoint.Checkpoint, error) {
		c, refused, err := checkpoint.Latest(ctx, dir)
		for _, r := range refused {
			fmt.Fprintf(note, "passed over: %v\n", r)
		}
		return c, err
	}
	if name == "latest" {
		return latest(filepath.Join(run, "checkpoints"))
	}
	if _, err := os.Stat(filepath.Join(name, "checkpoints")); err == nil {
		c, err := latest(filepath.Join(name, "checkpoints"))
		if err == nil && c == nil {
			err = fmt.Errorf("%s has no checkpoint", name)
		}
		return c, err
	}
	if _, err := os.Stat(name); err != nil {
		return nil, requestError{fmt.Errorf("--resume: %w", err)}
	}
	return checkpoint.OpenVerified(ctx, name)
}

func resumeCmd() *cobra.Command {
	var r runner
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run from its newest good checkpoint, under its own cut or another",
		Example: `  triax resume runs/tiny-20260301-101500
  triax resume runs/tiny-20260301-101500 --dp 4 --zero 3 --steps 2000`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := filepath.Join(args[0], "config.toml")
			if _, err := os.Stat(file); err != nil {
				return requestError{fmt.Errorf("not a run's folder: %w", err)}
			}
			load := func(extra ...string) (*configs.Config, error) { return loadConfig(cmd, file, extra...) }
			return r.run(cmd, load, func(*configs.Config) string { return args[0] }, args[0])
		},
	}
	r.flags(cmd)
	return cmd
}

func inspectCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "inspect CHECKPOINT",
		Short:   "List what a checkpoint holds: tensors, shapes, norms, the mesh it came from; every checksum is compared. Or a Hugging Face folder's",
		Example: "  triax inspect runs/tiny-20260301-101500/checkpoints/step-000000200",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil {
				return requestError{err}
			}
			if _, err := os.Stat(filepath.Join(args[0], "config.json")); err == nil {
				return inspectFolder(cmd, args[0], asJSON)
			}
			c, err := checkpointFrom(cmd.Context(), cmd.ErrOrStderr(), args[0], "")
			if err != nil {
				return err
			}
			defer c.Close()
			report := c.Report()
			if asJSON {
				return report.JSON(cmd.OutOrStdout())
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), report)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as one JSON object")
	return cmd
}
