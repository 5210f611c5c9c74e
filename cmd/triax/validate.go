package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"triax/plan"
)

func validateCmd() *cobra.Command {
	var worst int
	cmd := &cobra.Command{
		Use:   "validate FILE.csv ...",
		Short: "Plan runs that others have measured, and say how far off the plans are",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var rows []plan.Measured
			left := map[string]int{}
			for _, a := range args {
				f, err := os.Open(a)
				if err != nil {
					return requestError{err}
				}
				more, skipped, err := plan.ReadMeasured(f)
				f.Close()
				if err != nil {
					return requestError{fmt.Errorf("%s: %w", a, err)}
				}
				rows = append(rows, more...)
				for _, s := range skipped {
					left[s.Why]++
				}
			}
			checked, err := plan.Check(rows)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			for _, s := range plan.Scores(checked) {
				fmt.Fprintln(w, s)
			}
			fmt.Fprintln(w, plan.Overall(checked))
			for _, why := range slices.Sorted(maps.Keys(left)) {
				n := left[why]
				fmt.Fprintf(w, "%d rows left out: %s\n", n, why)
			}
			checked = slices.DeleteFunc(checked, func(c plan.Checked) bool { return c.Untimed })
			slices.SortFunc(checked, func(a, b plan.Checked) int {
				return int(math.Copysign(1, math.Abs(b.Error())-math.Abs(a.Error())))
			})
			for i, c := range checked {
				if i == worst {
					break
				}
				held := ""
				if c.Peak > 0 {
					held = fmt.Sprintf("; held %s, planned %s", plan.Bytes(c.Peak), plan.Bytes(c.Held))
				}
				fmt.Fprintf(w, "%+6.1f%%  %-20s %-10s tp%d pp%d dp%d m%d  measured %s, planned %s%s\n", 100*c.Error(), c.Source, c.ID,
					c.Config.Mesh.TP, c.Config.Mesh.PP, c.Config.Mesh.DP, c.Config.Pipeline.Microbatches, plan.Seconds(c.Seconds), plan.Seconds(c.Predicted), held)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&worst, "worst", 10, "rows to print, those furthest off first")
	return cmd
}
