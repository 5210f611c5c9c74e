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
	"triax/plan"
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
	{"device", "train.device", "what computes: float32 or float64 (the processor, in that type) or cuda (NVIDIA's)"},
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

// loadConfig reads the file and applies the flags, in the order: file, --set, short flags, extra.
func loadConfig(cmd *cobra.Command, path string, extra ...string) (*configs.Config, error) {
	return loadChecked(cmd, path, extra)
}

// loadPlanned is loadConfig for what is planned: what is wrong with the cluster is said beside what else is.
func loadPlanned(cmd *cobra.Command, path string) (*configs.Config, error) {
	return loadChecked(cmd, path, nil, plan.CheckCluster)
}

func loadChecked(cmd *cobra.Command, path string, extra []string, checks ...func(*configs.Config) configs.Problems) (*configs.Config, error) {
	overrides, err := overridesOf(cmd)
	if err != nil {
		return nil, err
	}
	cfg, err := configs.Load(path, append(overrides, extra...), checks...)
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
			load := func(extra ...string) (*configs.Config, error) { return loadConfig(cmd, args[0], extra...) }
			return r.run(cmd, load, func(cfg *configs.Config) string { return runFolder(out, cfg.Train.Out, args[0]) }, resume)
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
	ranks  ranks
}

func (r *runner) flags(cmd *cobra.Command) {
	addConfigFlags(cmd)
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "print the result as one JSON object, last on standard output")
	r.prof.flags(cmd)
	r.seen.flags(cmd)
	r.ranks.flags(cmd)
}

// run trains into a folder, from the checkpoint that resume names: "" for none, the folder itself for the newest one in it.
func (r *runner) run(cmd *cobra.Command, load func(extra ...string) (*configs.Config, error), name func(*configs.Config) string, resume string) error {
	if err := r.ranks.open(cmd.Context(), cmd.ErrOrStderr()); err != nil {
		return r.ranks.failed(err)
	}
	res, err := r.train(cmd, load, name, resume)
	if err != nil {
		return r.ranks.failed(err)
	}
	if r.ranks.world != nil {
		err := r.ranks.closed()
		r.ranks.line.Close()
		if err != nil {
			return err
		}
	}
	switch {
	case res.Stopped && r.ranks.first():
		return stoppedError{res}
	case res.Stopped:
		return silentError{stoppedError{res}}
	}
	return nil
}

func (r *runner) train(cmd *cobra.Command, load func(extra ...string) (*configs.Config, error), name func(*configs.Config) string, resume string) (_ *train.Result, err error) {
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	if cfg, err = r.ranks.fitted(cfg, cmd.ErrOrStderr(), load); err != nil {
		return nil, err
	}
	if r.ranks.world != nil {
		if m, err := cfg.Mesh.Grid(); err == nil { // else the run says why
			r.ranks.line.Place(m.Place(r.ranks.world.Rank() % m.Size()))
		}
	}
	opts := train.Options{Folder: name(cfg), OnHost: r.ranks.place.LocalSize}
	if r.ranks.world != nil {
		opts.World = r.ranks.world
	}
	if resume != "" && r.ranks.first() {
		if opts.Resume, err = checkpointFrom(cmd.Context(), cmd.ErrOrStderr(), resume, opts.Folder); err != nil {
			return nil, err
		}
		if c := opts.Resume; c != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "goes on from %s\n", c.Dir)
		}
	}
	if opts.Folder, opts.Resume, err = r.ranks.agree(cmd.Context(), opts.Folder, opts.Resume); err != nil {
		return nil, err
	}
	if opts.Resume != nil {
		defer opts.Resume.Close()
	}
	closed, err := openDevices(cfg, &opts, r.ranks.place)
	if err != nil {
		return nil, err
	}
	defer closed()
	left, err := r.ranks.use(cmd.Context(), cfg, &opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, left()) }()
	stopProfiles, err := r.prof.start()
	if err != nil {
		return nil, err
	}
	defer stopProfiles()
	if !r.ranks.first() {
		r.seen.metrics = "" // rank 0 answers
	}
	end, err := r.seen.attach(cmd.Context(), cmd.ErrOrStderr(), cfg.Train.LogEvery, &opts)
	if err != nil {
		return nil, err
	}
	stop, done := stopOnSignal(cmd.ErrOrStderr())
	defer done()
	opts.Stop = stop
	var res *train.Result
	res, err = train.Run(cmd.Context(), cfg, opts)
	end()
	if err != nil || !r.ranks.first() {
		return res, err
	}
	return res, r.print(cmd, res)
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
