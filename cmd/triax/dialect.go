package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/dialect"
)

func importConfigCmd() *cobra.Command {
	var (
		from, model, gpu, out string
		o                     dialect.Options
	)
	cmd := &cobra.Command{
		Use:   "import-config [FILE] --from megatron|deepspeed|torchtitan [-- FLAGS...]",
		Short: "Read another system's configuration: arguments or a script of Megatron-LM, DeepSpeed JSON, torchtitan TOML",
		Long: `Reads what other systems run and writes the same as a configuration of triax, on standard
output or to --out. What was taken over, what differs and what has no bearing is listed on
standard error; what has no counterpart is refused, all of it at once.`,
		Example: `  triax import-config pretrain.sh --from megatron -o job.toml
  triax import-config --from megatron --world 64 -- --num-layers 48 --hidden-size 8192 ...
  triax import-config ds_config.json --from deepspeed --world 16 --model llama2-7b`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := foreign(cmd, args)
			if err != nil {
				return err
			}
			if model != "" {
				if o.Base, err = modelFrom(model); err != nil {
					return err
				}
			}
			r, err := dialect.Import(dialect.System(from), text, o)
			if err != nil {
				return err
			}
			if gpu != "" {
				if r.Config.Cluster == nil {
					r.Config.Cluster = map[string]any{}
				}
				r.Config.Cluster["gpu"] = gpu
			}
			notes(cmd.ErrOrStderr(), r)
			b, err := r.Config.TOML()
			if err != nil {
				return err
			}
			return writeOut(cmd, out, b)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "megatron, deepspeed or torchtitan")
	f.IntVar(&o.World, "world", 0, "ranks, where the file does not say")
	f.StringVar(&model, "model", "", "a preset's name or one of our files: the model, where the file does not say")
	f.StringVar(&gpu, "gpu", "", "device for [cluster], so that triax plan can price the job")
	f.StringSliceVar(&o.Ignore, "ignore", nil, "settings to pass over that would be refused")
	f.StringVarP(&out, "out", "o", "", "file to write; standard output if empty")
	return cmd
}

// foreign is the text of the one file named, or the flags after --.
func foreign(cmd *cobra.Command, args []string) (string, error) {
	if at := cmd.ArgsLenAtDash(); at == 0 && len(args) > 0 {
		var b strings.Builder
		b.WriteString("python pretrain_gpt.py")
		for _, a := range args {
			fmt.Fprintf(&b, " '%s'", strings.ReplaceAll(a, "'", `'\''`))
		}
		return b.String(), nil
	}
	if len(args) != 1 {
		return "", requestError{fmt.Errorf("want one file, or flags after --\nusage: %s", cmd.UseLine())}
	}
	f, err := os.Open(args[0])
	if err != nil {
		return "", requestError{err}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, dialect.MaxFile+1))
	return string(text), err
}

// modelFrom is the configuration of a file, or the default one with a preset.
func modelFrom(name string) (*configs.Config, error) {
	if strings.HasSuffix(name, ".toml") {
		return configs.Load(name, nil)
	}
	return configs.Load("", []string{"model.preset=" + name, "data.tokenizer=gpt2"})
}

func notes(w io.Writer, r *dialect.Reading) {
	fmt.Fprintf(w, "%d ranks\n", r.World)
	for _, part := range []struct {
		title string
		list  []dialect.Note
	}{{"taken over", r.Taken}, {"read as something near", r.Differs}, {"without bearing", r.Unused}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s:\n", part.title)
		for _, n := range part.list {
			fmt.Fprintf(w, "  %v\n", n)
		}
	}
}

func exportConfigCmd() *cobra.Command {
	var (
		to, out string
		set     []string
	)
	cmd := &cobra.Command{
		Use:     "export-config CONFIG.toml --to megatron|deepspeed|torchtitan",
		Short:   "Write a configuration as another system reads it; what that system cannot do is refused by name",
		Example: "  triax search job.toml --gpus 64 --out best.toml && triax export-config best.toml --to megatron -o pretrain.sh",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := configs.Load(args[0], set)
			if err != nil {
				return err
			}
			text, err := dialect.Export(dialect.System(to), c)
			if err != nil {
				return err
			}
			return writeOut(cmd, out, []byte(text))
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "megatron, deepspeed or torchtitan")
	f.StringVarP(&out, "out", "o", "", "file to write; standard output if empty")
	f.StringArrayVar(&set, "set", nil, "section.key=value, over the file")
	return cmd
}
