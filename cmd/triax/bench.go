package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"
)

func benchCmd() *cobra.Command {
	var out string
	var steps int
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine in under a minute: kernels, memory, collectives; the planner can read the result",
		Example: `  triax bench --out machine.json
  triax bench --runs 20      # and train two dozen layouts, predicted beside measured
  triax plan configs/small.toml --dp 2 --set cluster.calibrated=machine.json`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := measure(cmd.Context(), cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if steps > 0 {
				if err := runOwn(cmd.Context(), cmd.OutOrStdout(), c, steps); err != nil {
					return err
				}
			}
			if out == "" {
				return nil
			}
			text, err := json.MarshalIndent(c, "", "  ")
			if err != nil {
				return err
			}
			if err := os.WriteFile(out+".part", append(text, '\n'), 0o644); err != nil {
				return err
			}
			return os.Rename(out+".part", out)
		},
	}
	cmd.Flags().IntVar(&steps, "runs", 0, "then train two dozen layouts for so many steps each, and print what was planned beside it")
	cmd.Flags().StringVar(&out, "out", "", "write the machine here, for [cluster] calibrated")
	return cmd
}
