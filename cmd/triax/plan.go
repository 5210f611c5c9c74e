package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"triax/plan"
)

func planCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan CONFIG.toml",
		Short: "Say what a layout costs, without running it: memory, traffic, bubble, step time",
		Example: `  triax plan configs/tiny.toml --dp 2 --pp 2 --tp 2 --zero 3
  triax plan configs/compare/gpt3-175b.toml --json`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(cmd, args[0])
			if err != nil {
				return err
			}
			p, err := plan.New(cfg)
			if err != nil {
				return err
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
	return cmd
}
