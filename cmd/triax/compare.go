package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/plan"
	"triax/train"
)

func compareCmd() *cobra.Command {
	var asJSON, withPlan bool
	cmd := &cobra.Command{
		Use:   "compare [LABEL=]CONFIG.toml|RUN-FOLDER ...",
		Short: "Put plans of configurations and finished runs side by side; the first is the base",
		Example: `  triax compare configs/dp.toml configs/zero1.toml configs/zero2.toml configs/zero3.toml
  triax compare base=configs/compare/175b-3d.toml configs/compare/175b-zero3.toml --set train.batch=2304
  triax compare runs/one runs/two --with-plan`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return requestError{fmt.Errorf("name at least one configuration or run folder")}
			}
			return nil
		},
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
	name, path, ok := strings.Cut(arg, "=")
	if !ok {
		path = arg
		name = strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	info, err := os.Stat(path)
	isRun := err == nil && info.IsDir()
	file := path
	if isRun {
		file = filepath.Join(path, "config.toml")
	}
	cfg, err := loadConfig(cmd, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []plan.Column
	if isRun {
		c, err := measuredColumn(name, path, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, c)
		if !withPlan {
			return out, nil
		}
		name += " planned"
	}
	p, err := plan.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return append(out, plan.ColumnOf(name, p)), nil
}

// measuredColumn is a finished run under the planner's metrics.
func measuredColumn(name, folder string, cfg *configs.Config) (plan.Column, error) {
	f, err := os.Open(filepath.Join(folder, "result.json"))
	if err != nil {
		return plan.Column{}, requestError{err}
	}
	defer f.Close()
	var r train.Result
	if err := json.NewDecoder(io.LimitReader(f, 1<<28)).Decode(&r); err != nil {
		return plan.Column{}, requestError{fmt.Errorf("result.json: %w", err)}
	}
	if len(r.Memory) == 0 || r.Ranks == 0 {
		return plan.Column{}, requestError{errors.New("result.json is not that of a finished run")}
	}
	c := plan.Column{Name: name, Layout: r.Mesh, Fits: "ran", Tokens: cfg.Train.Batch * cfg.Model.Sequence}
	worst := r.Memory[0]
	for _, m := range r.Memory {
		if m.Peak > worst.Peak {
			worst = m
		}
	}
	c.Values = map[string]float64{
		"ranks": float64(r.Ranks), "step": r.StepMS / 1e3, "tokens/s": r.TokensPerS, "bubble": r.Bubble.Measured,
		"memory, worst rank": float64(worst.Peak), "  weights": float64(worst.Parameters), "  gradients": float64(worst.Gradients),
		"  states": float64(worst.Optimizer), "  activations": float64(worst.Activations), "  buffers": float64(worst.Buffers),
	}
	for _, e := range r.Comm {
		c.Values[plan.SentMetric(e.Axis)] += e.Wire / float64(r.Ranks)
	}
	return c, nil
}
