package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"triax/plan"
)

func calibrateCmd() *cobra.Command {
	var n, times, worst int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "calibrate RUNS.csv",
		Short: "Fit a cluster's three constants to a handful of measured runs, and say how far off the rest are",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return requestError{err}
			}
			defer f.Close()
			rows, skipped, err := plan.ReadMeasured(f)
			if err != nil {
				return requestError{fmt.Errorf("%s: %w", args[0], err)}
			}
			checked, err := plan.Check(rows)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "%d runs, %d lines left out\n", len(checked), len(skipped))
			for _, s := range plan.Scores(checked) {
				fmt.Fprintln(w, "as planned:", s)
			}
			all, err := plan.Calibrate(checked)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, "all runs:  ", all)
			report, err := plan.Residuals(checked, all)
			if err != nil {
				return requestError{err}
			}
			fmt.Fprintln(w, report)
			fmt.Fprintln(w, plan.Fitted(checked, report, worst))
			if n == 0 {
				return nil
			}
			draws, err := plan.Draws(checked, n, times, seed)
			if err != nil {
				return requestError{err}
			}
			for _, d := range []struct {
				name string
				at   int
			}{{"best", 0}, {"median", len(draws) / 2}, {"worst", len(draws) - 1}} {
				x := draws[d.at]
				fmt.Fprintf(w, "%s of %d draws of %d runs (seed %d): %v\n  on the rest: %v, %.0f%% of them inside their interval\n", d.name, times, n, seed, x.Fit, x.Score, 100*x.Covered)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&n, "draw", 12, "runs to fit on; 0 fits on all")
	cmd.Flags().IntVar(&times, "times", 30, "draws")
	cmd.Flags().IntVar(&worst, "worst", 10, "runs to print, those furthest off after the fit first")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of the draws")
	return cmd
}
