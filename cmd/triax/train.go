package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/train"
)

// shortFlags are the flags that stand for a key of the configuration.
var shortFlags = []struct{ name, key, usage string }{
	{"tp", "mesh.tp", "tensor-parallel degree"},
	{"pp", "mesh.pp", "pipeline-parallel degree"},
	{"dp", "mesh.dp", "data-parallel degree"},
	{"zero", "zero.stage", "ZeRO stage on the data axis: 0, 1, 2 or 3"},
	{"schedule", "pipeline.schedule", "pipeline schedule: gpipe, 1f1b, interleaved, ..."},
	{"microbatches", "pipeline.microbatches", "microbatches a step"},
	{"chunks", "pipeline.chunks", "virtual stages a pipeline rank"},
	{"steps", "train.steps", "training steps"},
	{"seed", "train.seed", "seed of weights and of the order of samples"},
	{"sample", "train.sample", "prompt to continue after training"},
}

// addConfigFlags gives a command the short flags and --set.
func addConfigFlags(cmd *cobra.Command) {
	for _, f := range shortFlags {
		cmd.Flags().String(f.name, "", f.usage+" ("+f.key+")")
	}
	cmd.Flags().StringArray("set", nil, "any key of the configuration: section.key=value (repeatable)")
}

// loadConfig reads the file and applies the flags, in the order: file, --set, short flags.
func loadConfig(cmd *cobra.Command, path string) (*configs.Config, error) {
	overrides, err := overridesOf(cmd)
	if err != nil {
		return nil, err
	}
	cfg, err := configs.Load(path, overrides)
	if err != nil && !errors.As(err, &configs.Problems{}) {
		return nil, requestError{err} // the file cannot be read
	}
	return cfg, err
}

// overridesOf are the keys that flags set, --set first.
func overridesOf(cmd *cobra.Command) ([]string, error) {
	overrides, err := cmd.Flags().GetStringArray("set")
	if err != nil {
		return nil, err
	}
	for _, f := range append(slices.Clone(shortFlags), sampleFlags...) {
		if flag := cmd.Flags().Lookup(f.name); flag != nil && flag.Changed {
			overrides = append(overrides, f.key+"="+flag.Value.String())
		}
	}
	return overrides, nil
}

func trainCmd() *cobra.Command {
	var out, resume string
	var r runner
	cmd := &cobra.Command{
		Use:   "train CONFIG.toml",
		Short: "Train a model, cut over ranks as the configuration says",
		Example: `  triax train configs/tiny.toml
  triax train configs/tiny.toml --dp 2 --pp 2 --tp 2 --zero 3 --microbatches 2
  triax train configs/small.toml --sample "func main() {" --json
  triax train configs/small.toml --out runs/mine --resume latest`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(cmd, args[0])
			if err != nil {
				return err
			}
			return r.run(cmd, cfg, runFolder(out, cfg.Train.Out, args[0]), resume)
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&out, "out", "", "folder of the run (default runs/NAME-TIME)")
	cmd.Flags().StringVar(&resume, "resume", "", "go on from a checkpoint, a run's newest one, or with latest from the newest one in --out where there is one")
	return cmd
}

// runner is how train and resume run: what is shown, and how the end is brought about.
type runner struct {
	asJSON bool
	prof   profiles
	seen   watch
}

func (r *runner) flags(cmd *cobra.Command) {
	addConfigFlags(cmd)
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "print the result as one JSON object, last on standard output")
	r.prof.flags(cmd)
	r.seen.flags(cmd)
}

// run trains into folder, from the checkpoint that resume names: "" for none, folder itself for the newest one in it.
func (r *runner) run(cmd *cobra.Command, cfg *configs.Config, folder, resume string) error {
	opts := train.Options{Folder: folder}
	if resume != "" {
		c, err := checkpointFrom(cmd.Context(), cmd.ErrOrStderr(), resume, folder)
		if err != nil {
			return err
		}
		if c != nil {
			defer c.Close()
			fmt.Fprintf(cmd.ErrOrStderr(), "goes on from %s\n", c.Dir)
		}
		opts.Resume = c
	}
	stopProfiles, err := r.prof.start()
	if err != nil {
		return err
	}
	defer stopProfiles()
	end, err := r.seen.attach(cmd.Context(), cmd.ErrOrStderr(), cfg.Train.LogEvery, &opts)
	if err != nil {
		return err
	}
	stop, done := stopOnSignal(cmd.ErrOrStderr())
	defer done()
	opts.Stop = stop
	res, err := train.Run(cmd.Context(), cfg, opts)
	end()
	if err != nil {
		return err
	}
	if err := r.print(cmd, res); err != nil {
		return err
	}
	if res.Stopped {
		return stoppedError{res}
	}
	return nil
}

func (r *runner) print(cmd *cobra.Command, res *train.Result) error {
	if r.asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(res)
	}
	fmt.Fprintln(cmd.OutOrStdout(), res)
	if res.Sample != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "sample:\n%s\n", res.Sample)
	}
	return nil
}

// runFolder is where a run is written: the flag, the configuration's, or a fresh name under runs.
func runFolder(flag, config, path string) string {
	if flag != "" {
		return flag
	}
	if config != "" {
		return config
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return filepath.Join("runs", name+"-"+time.Now().Format("20060102-150405.000"))
}
