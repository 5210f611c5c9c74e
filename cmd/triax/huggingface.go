package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"triax/data"
	"triax/hf"
	"triax/launch"
	"triax/nn"
	"triax/train"
)

func importCmd() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import DIR",
		Short: "Read a Hugging Face model straight into a mesh, and write a configuration that trains it",
		Long: `Read a folder of config.json and safetensors files (gpt2, llama, mistral without sliding window, qwen2, qwen3; one file or several with an index;
float32, float16, bfloat16) into every rank of the mesh, each its own slices, and say what each holds. Anything that this program would not compute
exactly is refused by name. Training reads the folder itself: [model] from = "DIR".`,
		Example: `  triax import models/qwen3-0.6b --tp 2 --pp 2
  triax import models/gpt2 --dp 2 --tp 2 --zero 3 -o mine.toml && triax train mine.toml`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := openModel(cmd, args[0])
			if err != nil {
				return err
			}
			if m.saved != nil {
				return requestError{errors.Join(fmt.Errorf("%s: a run of this program needs no import; see triax resume, eval, sample and export", args[0]), m.close())}
			}
			if out != "" {
				if _, err := os.Stat(out); err == nil {
					return requestError{fmt.Errorf("%s: is there already", out)}
				}
			}
			closed, err := openDevices(m.cfg, &m.opts, launch.Place{})
			if err != nil {
				return err
			}
			defer closed()
			held, took, err := train.Import(cmd.Context(), m.cfg, m.opts)
			if err != nil {
				return err
			}
			if out != "" {
				text, err := m.cfg.TOML()
				if err != nil {
					return err
				}
				if err := os.WriteFile(out, text, 0o644); err != nil {
					return err
				}
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"ranks": held, "seconds": took.Seconds()})
			}
			return printHeld(cmd, held, took)
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "write a configuration that trains from the model on this mesh")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

func printHeld(cmd *cobra.Command, held []train.Held, took time.Duration) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rank\tplace\tparameters MB\tpeak MB\t")
	total := int64(0)
	for _, h := range held {
		fmt.Fprintf(w, "%d\t%s\t%.2f\t%.2f\t\n", h.Rank, h.Place, float64(h.Parameters)/1e6, float64(h.Peak)/1e6)
		total += h.Parameters
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%.2f MB in %.2f s\n", float64(total)/1e6, took.Seconds())
	return err
}

func exportCmd() *cobra.Command {
	var out, dtype string
	var shard float64
	var adapter bool
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write a folder that Hugging Face's transformers loads",
		Long: "Write a model as config.json and safetensors files. " + modelHelp + `
The tokenizer files of the folder that the model was imported from come along. A number that the type cannot hold is an error.
Low-rank adapters are merged into the matrices, or with --adapter written alone, in the layout of PEFT.`,
		Example: `  triax export runs/mine --dtype bf16 -o models/mine
  triax export runs/mine/checkpoints/step-000000200 -o models/mine-200`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if out == "" {
				return requestError{errors.New("--out: name the folder to write")}
			}
			kind, ok := hf.DTypes[dtype]
			if !ok {
				return requestError{fmt.Errorf("--dtype %q: want one of %s", dtype, strings.Join(hf.Types(), ", "))}
			}
			m, err := openModel(cmd, args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.close()) }()
			e := hf.Export{DType: kind, ShardBytes: int64(shard * 1e9), From: m.opts.Weights}
			if e.Model, e.Like, e.EOS, err = m.exported(); err != nil {
				return err
			}
			if m.saved == nil {
				w, err := hf.Open(args[0])
				if err != nil {
					return requestError{err}
				}
				defer w.Close()
				e.From = w
			}
			if e.Model = e.Model.Resolved(); e.Model.LoRARank > 0 && !adapter {
				e.From = &hf.Merged{Model: e.Model, From: e.From}
				e.Model.LoRARank, e.Model.LoRAAlpha, e.Model.LoRATargets = 0, 0, nil
			}
			write := e.Write
			if adapter {
				write = hf.Adapters{Model: e.Model, From: e.From, DType: kind, Base: m.cfg.Model.From}.Write
			}
			if err := write(out); err != nil {
				return err
			}
			size := int64(0)
			files, err := filepath.Glob(filepath.Join(out, "*.safetensors"))
			for _, f := range files {
				if info, err := os.Stat(f); err == nil {
					size += info.Size()
				}
			}
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %.2f MB of %s in %d files\n", out, float64(size)/1e6, dtype, len(files))
			}
			return err
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder to write; must not exist")
	cmd.Flags().StringVar(&dtype, "dtype", "float32", "type of the weights: "+strings.Join(hf.Types(), ", "))
	cmd.Flags().BoolVar(&adapter, "adapter", false, "write the low-rank adapters alone, as PEFT loads them")
	cmd.Flags().Float64Var(&shard, "shard-gb", 5, "bound on a file's size, in GB")
	return cmd
}

// exported is the model to write, the folder it is like, and its end-of-text token.
func (m *model) exported() (shape nn.Config, like string, eos int, err error) {
	shape, like, eos = m.cfg.Model, m.cfg.Model.From, -1
	if _, err := os.Stat(filepath.Join(like, "config.json")); err != nil {
		like = ""
	}
	tok, err := data.NewTokenizer(m.cfg.Data.Tokenizer)
	if err == nil {
		eos = int(tok.End())
	}
	if shape.Vocab == 0 {
		shape.Vocab = tok.Vocab()
	}
	return shape, like, eos, err
}

// inspectFolder lists the tensors of a Hugging Face folder.
func inspectFolder(cmd *cobra.Command, dir string, asJSON bool) error {
	w, err := hf.Open(dir)
	if err != nil {
		return requestError{err}
	}
	defer w.Close()
	l, err := w.List()
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(l)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), l)
	return err
}
