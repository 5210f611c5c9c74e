package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/schedule"
)

func drawCmd() *cobra.Command {
	var f, i, w int
	cmd := &cobra.Command{
		Use:   "draw [CONFIG.toml]",
		Short: "Draw a pipeline schedule as text, with its idle share, makespan and microbatches in flight",
		Example: `  triax draw --schedule 1f1b --pp 4 --microbatches 8
  triax draw --schedule interleaved --pp 4 --microbatches 8 --chunks 2
  triax draw configs/pp.toml --forward 1 --input 1 --weight 1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := chosenSchedule(cmd, args)
			if err != nil {
				return err
			}
			if f < 1 || i < 0 || w < 0 || i+w < 1 {
				return requestError{fmt.Errorf("costs F %d, I %d, W %d: F is at least 1, I and W at least 0 and together at least 1; use 1, 1, 1", f, i, w)}
			}
			unit := time.Millisecond
			text, err := schedule.Draw(s, schedule.Uniform(time.Duration(f)*unit, time.Duration(i)*unit, time.Duration(w)*unit))
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), text)
			return nil
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().IntVar(&f, "forward", 1, "time of a forward, in units")
	cmd.Flags().IntVar(&i, "input", 1, "time of an input gradient")
	cmd.Flags().IntVar(&w, "weight", 1, "time of a weight gradient; a full backward takes input + weight")
	return cmd
}

// chosenSchedule is the one of the configuration, or of the flags alone. Without a file only the pipeline's own rules apply.
func chosenSchedule(cmd *cobra.Command, args []string) (*schedule.Schedule, error) {
	if len(args) == 1 {
		cfg, err := loadConfig(cmd, args[0])
		if err != nil {
			return nil, err
		}
		return configs.Schedule(cfg)
	}
	name, err := cmd.Flags().GetString("schedule")
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = "1f1b"
	}
	n := map[string]int{"pp": 4, "microbatches": 8, "chunks": 0}
	for key := range n {
		text, err := cmd.Flags().GetString(key)
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		if n[key], err = strconv.Atoi(text); err != nil {
			return nil, requestError{fmt.Errorf("--%s %q: want a whole number, such as 4", key, text)}
		}
	}
	s, err := schedule.New(name, n["pp"], n["microbatches"], n["chunks"])
	if err != nil {
		return nil, requestError{err}
	}
	return s, nil
}
