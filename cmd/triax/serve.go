package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"triax/serve"
)

func serveCmd() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "serve [[LABEL=]CONFIG.toml|RUN-FOLDER ...]",
		Short: "Choose layouts with sliders on a local page, and see what they cost at once",
		Example: `  triax serve
  triax serve configs/compare/gpt3-175b.toml
  triax serve a=configs/compare/175b-3d.toml b=configs/compare/175b-zero3.toml runs/mine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var o serve.Options
			for _, a := range args {
				name, path, folder := split(a)
				if folder {
					o.Runs = append(o.Runs, path)
					continue
				}
				cfg, err := loadConfig(cmd, path)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				o.Layouts = append(o.Layouts, serve.Layout{Name: name, Config: cfg})
			}
			s, err := serve.New(o)
			if err != nil {
				return requestError{err}
			}
			ready := false
			err = s.Serve(cmd.Context(), addr, func(url string) {
				ready = true
				fmt.Fprintf(cmd.ErrOrStderr(), "open %s (end with Ctrl-C)\n", url)
			})
			if err != nil && !ready {
				return requestError{fmt.Errorf("--addr %s: %w", addr, err)}
			}
			return err
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:7070", "address to answer at; port 0 takes a free one")
	return cmd
}
