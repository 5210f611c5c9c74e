package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"triax/plan"
)

func compareCmd() *cobra.Command {
	var asJSON, withPlan bool
	cmd := &cobra.Command{
		Use:   "compare [LABEL=]CONFIG.toml|RUN-FOLDER ...",
		Short: "Put plans of configurations and finished runs side by side; the first is the base",
		Example: `  triax compare configs/dp.toml configs/zero1.toml configs/zero2.toml configs/zero3.toml
  triax compare base=configs/compare/175b-3d.toml configs/compare/175b-zero3.toml --set train.batch=2304
  triax compare runs/one runs/two --with-plan`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			var columns []plan.Column
			for _, a := range args {
				more, err := columnsOf(cmd, a, withPlan)
				if err != nil {
					return err
				}
				columns = append(columns, more...)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(columns)
			}
			fmt.Fprintln(cmd.OutOrStdout(), plan.Compare(columns))
			return nil
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the columns as JSON")
	cmd.Flags().BoolVar(&withPlan, "with-plan", false, "beside each finished run show its plan")
	return cmd
}

// columnsOf reads one argument: a configuration is planned, a run folder shows what was measured.
func columnsOf(cmd *cobra.Command, arg string, withPlan bool) ([]plan.Column, error) {
	name, path, folder := split(arg)
	if !folder {
		cfg, err := loadPlanned(cmd, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p, err := plan.New(cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return []plan.Column{plan.ColumnOf(name, p)}, nil
	}
	i, err := runItem(cmd, name, path)
	if err != nil {
		return nil, err
	}
	c, err := i.Run.Column(name)
	if err != nil {
		return nil, requestError{errors.Join(append([]error{err}, texts(i.Run.Notes)...)...)}
	}
	out := []plan.Column{c}
	if withPlan {
		out = append(out, plan.ColumnOf(name+" planned", i.Plan))
	}
	return out, nil
}

func texts(notes []string) (out []error) {
	for _, n := range notes {
		out = append(out, errors.New(n))
	}
	return out
}
