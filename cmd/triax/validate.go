package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"triax/plan"
)

func validateCmd() *cobra.Command {
	var worst int
	cmd := &cobra.Command{
		Use:   "validate FILE.csv|FOLDER ...",
		Short: "Plan runs that others have measured, and say how far off the plans are",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, left, err := readTables(args)
			if err != nil {
				return requestError{err}
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
				return cmp.Compare(math.Abs(b.Error()), math.Abs(a.Error()))
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

// readTables reads tables of runs, of a folder all its *.csv, and counts the rows left out by why.
func readTables(paths []string) (rows []plan.Measured, left map[string]int, err error) {
	left = map[string]int{}
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.csv")); err != nil || len(files) == 0 {
				return nil, nil, fmt.Errorf("%s: a folder without *.csv", path)
			}
		}
		for _, name := range files {
			f, err := os.Open(name)
			if err != nil {
				return nil, nil, err
			}
			more, skipped, err := plan.ReadMeasured(f)
			f.Close()
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			rows = append(rows, more...)
			for _, s := range skipped {
				left[s.Why]++
			}
		}
	}
	return rows, left, nil
}
