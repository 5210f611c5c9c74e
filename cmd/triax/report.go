package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/plan"
	"triax/report"
)

func reportCmd() *cobra.Command {
	var out, pictures, title string
	var search time.Duration
	cmd := &cobra.Command{
		Use:   "report [LABEL=]CONFIG.toml|RUN-FOLDER ...",
		Short: "Draw plans and finished runs: one self-contained page, and pictures",
		Example: `  triax report runs/mine -o report.html
  triax report base=configs/compare/175b-3d.toml configs/compare/175b-zero3.toml -o report.html
  triax report configs/compare/gpt3-175b.toml --search 20s --png pictures`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			var items []report.Item
			for _, a := range args {
				i, err := itemOf(cmd, a)
				if err != nil {
					return err
				}
				i.Fixed, i.Growing = report.Scaling(i.Plan)
				if err := addSearch(cmd.Context(), &i, search); err != nil {
					return err
				}
				items = append(items, i)
			}
			if title == "" {
				title = "triax: " + names(items)
			}
			if err := writeBeside(out, func(w io.Writer) error { return report.Write(w, title, items) }); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "written to %s\n", out)
			if pictures == "" {
				return nil
			}
			files, err := report.Pictures(pictures, items)
			fmt.Fprintf(cmd.ErrOrStderr(), "%d pictures in %s\n", len(files), pictures)
			return err
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "report.html", "page to write")
	cmd.Flags().StringVar(&pictures, "png", "", "folder for every chart as PNG and SVG, too")
	cmd.Flags().StringVar(&title, "title", "", "the page's title")
	cmd.Flags().DurationVar(&search, "search", 0, "search all layouts of each for at most so long, and draw memory against time; 0 does not")
	return cmd
}

func atLeastOne(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return requestError{errors.New("name at least one configuration or run folder")}
	}
	return nil
}

func names(items []report.Item) string {
	var list []string
	for _, i := range items {
		list = append(list, i.Name)
	}
	return strings.Join(list, ", ")
}

// split takes a label from an argument, and says whether the rest is a folder.
func split(arg string) (name, path string, folder bool) {
	name, path, ok := strings.Cut(arg, "=")
	if !ok {
		path = arg
		name = strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg))
	}
	info, err := os.Stat(path)
	return name, path, err == nil && info.IsDir()
}

// itemOf reads one argument and plans it; of a run's folder it takes what was measured, too.
func itemOf(cmd *cobra.Command, arg string) (report.Item, error) {
	name, path, folder := split(arg)
	if folder {
		return runItem(cmd, name, path)
	}
	cfg, err := loadPlanned(cmd, path)
	if err != nil {
		return report.Item{}, fmt.Errorf("%s: %w", path, err)
	}
	p, err := plan.New(cfg)
	if err != nil {
		return report.Item{}, fmt.Errorf("%s: %w", path, err)
	}
	return report.Item{Name: name, Plan: p}, nil
}

// runItem is a run's folder beside its plan; flags may say on what cluster it is planned.
func runItem(cmd *cobra.Command, name, path string) (report.Item, error) {
	overrides, err := overridesOf(cmd)
	if err != nil {
		return report.Item{}, err
	}
	run, err := report.ReadRun(path, overrides)
	if err != nil {
		if !errors.As(err, &configs.Problems{}) {
			err = requestError{err}
		}
		return report.Item{}, fmt.Errorf("%s: %w", path, err)
	}
	p, err := plan.New(run.Config)
	if err != nil {
		return report.Item{}, fmt.Errorf("%s: %w", path, err)
	}
	return report.Item{Name: name, Plan: p, Run: run}, nil
}

// addSearch gives an item the front of all layouts, as far as one comes in the time.
func addSearch(ctx context.Context, i *report.Item, limit time.Duration) error {
	if limit <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := report.NewSearch(i.Plan.Config, i.Plan.Device, i.Plan.Ranks)
	err := s.Run(ctx)
	i.Front = s.Front()
	if errors.Is(err, context.DeadlineExceeded) {
		i.Notes = append(i.Notes, fmt.Sprintf("the search was ended after %v", limit))
		return nil
	}
	return err
}
