package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"triax/plan"
)

func compareCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare [LABEL=]CONFIG.toml ...",
		Short: "Put the plans of several configurations side by side; the first is the base",
		Example: `  triax compare configs/dp.toml configs/zero1.toml configs/zero2.toml configs/zero3.toml
  triax compare base=configs/compare/175b-3d.toml configs/compare/175b-zero3.toml --set train.batch=2304`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var columns []plan.Column
			for _, a := range args {
				name, path, ok := strings.Cut(a, "=")
				if !ok {
					path = a
					name = strings.TrimSuffix(filepath.Base(a), filepath.Ext(a))
				}
				cfg, err := loadConfig(cmd, path)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				p, err := plan.New(cfg)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				columns = append(columns, plan.Column{Name: name, Plan: p})
			}
			if asJSON {
				out := map[string]*plan.Plan{}
				for _, c := range columns {
					out[c.Name] = c.Plan
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(out)
			}
			fmt.Fprintln(cmd.OutOrStdout(), plan.Compare(columns))
			return nil
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plans as one JSON object, by label")
	return cmd
}
