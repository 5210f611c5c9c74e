package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"triax/plan"
)

func searchCmd() *cobra.Command {
	var ranks, show int
	var maxMem float64
	var out string
	cmd := &cobra.Command{
		Use:   "search CONFIG.toml",
		Short: "Price every legal layout of a model and batch, and order them",
		Example: `  triax search configs/compare/gpt3-175b.toml --gpus 1024
  triax search configs/small.toml --gpus 8 --max-mem 2 --out best.toml`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadPlanned(cmd, args[0])
			if err != nil {
				return err
			}
			c, err := plan.ClusterFor(cfg)
			if err != nil {
				return err
			}
			if ranks == 0 {
				ranks = cfg.Mesh.World()
			}
			start := time.Now()
			found, err := plan.Search(cmd.Context(), cfg, c, plan.Limits{Ranks: ranks, Memory: maxMem * 1e9, Keep: max(1, show)})
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "%d legal layouts on %d ranks: %d priced, of which %d fit; the others cannot be among the first %d nor on the front; %v\n", found.Legal, ranks, found.Tried, found.Fit,
				max(1, show), time.Since(start).Round(time.Millisecond))
			if len(found.Best) == 0 {
				if found.Missed != nil {
					fmt.Fprintf(w, "nothing fits; nearest: %s, %s missing\n", found.Missed.Plan.Layout, plan.Bytes(-found.Missed.Plan.Room))
				}
				return requestError{fmt.Errorf("no layout fits %d ranks of %s", ranks, c.Name)}
			}
			fmt.Fprintln(w, plan.Ranking(found.Best, show))
			fmt.Fprintln(w, "\nmemory against time: no other layout is better in both")
			fmt.Fprintln(w, plan.Ranking(found.Front, show))
			if out == "" {
				return nil
			}
			text, err := found.Best[0].Config.TOML()
			if err != nil {
				return err
			}
			if err := os.WriteFile(out+".part", text, 0o644); err != nil {
				return err
			}
			return os.Rename(out+".part", out)
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().IntVar(&ranks, "gpus", 0, "ranks to lay the model out on (default: those of the configuration)")
	cmd.Flags().Float64Var(&maxMem, "max-mem", 0, "GB a device may use (default: the device's)")
	cmd.Flags().IntVar(&show, "show", 10, "layouts to print")
	cmd.Flags().StringVar(&out, "out", "", "write the best layout's configuration here")
	return cmd
}
