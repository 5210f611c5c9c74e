package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"triax/plan"
	"triax/report"
)

func planCmd() *cobra.Command {
	var asJSON bool
	var trace string
	cmd := &cobra.Command{
		Use:   "plan CONFIG.toml",
		Short: "Say what a layout costs, without running it: memory, traffic, bubble, step time",
		Example: `  triax plan configs/tiny.toml --dp 2 --pp 2 --tp 2 --zero 3
  triax plan configs/compare/gpt3-175b.toml --json
  triax plan configs/compare/175b-3d.toml --trace trace.json`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadPlanned(cmd, args[0])
			if err != nil {
				return err
			}
			p, err := plan.New(cfg)
			if err != nil {
				return err
			}
			if trace != "" {
				lanes := report.Item{Name: p.Layout, Plan: p}.Timelines()
				if err := writeBeside(trace, func(w io.Writer) error { return report.WriteTrace(w, lanes...) }); err != nil {
					return requestError{fmt.Errorf("--trace %s: %w", trace, err)}
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "written to %s\n", trace)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			}
			fmt.Fprintln(cmd.OutOrStdout(), p)
			return nil
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan as one JSON object")
	cmd.Flags().StringVar(&trace, "trace", "", "write the simulated schedule here, in Chrome's trace event format (Perfetto opens it)")
	return cmd
}
