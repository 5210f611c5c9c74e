package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"triax/launch"
	"triax/train"
)

const modelHelp = `MODEL is a folder of a Hugging Face model, a run's folder (its newest good checkpoint), or a checkpoint.`

func evalCmd() *cobra.Command {
	var asJSON bool
	var texts []string
	cmd := &cobra.Command{
		Use:   "eval MODEL",
		Short: "Loss and perplexity of a model on text, on any mesh",
		Long: "Loss and perplexity on the run's held-out tokens, or on all of --data. " + modelHelp + `
--set train.eval_batches=N bounds the batches of train.batch samples.`,
		Example: `  triax eval runs/mine
  triax eval models/qwen3-0.6b --data texts/ --tp 2 --set model.sequence=512`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m, err := openModel(cmd, args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.close()) }()
			set, err := overridesOf(cmd)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, "train.eval_batches=") }) {
				m.cfg.Train.EvalBatches = 0 // that of a run is for between its steps
			}
			if len(texts) > 0 {
				m.cfg.Data.Source, m.cfg.Data.HeldOut, m.cfg.Data.Format = texts, 0, ""
			}
			closed, err := openDevices(m.cfg, &m.opts, launch.Place{})
			if err != nil {
				return err
			}
			defer closed()
			e, err := train.Evaluate(cmd.Context(), m.cfg, m.opts)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(e)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), e)
			return err
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().StringArrayVar(&texts, "data", nil, "files, directories or globs of text (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// sampleFlags stand for keys of the configuration.
var sampleFlags = []struct{ name, key, usage string }{
	{"tokens", "train.sample_tokens", "tokens to add"},
	{"temperature", "train.temperature", "of the draw; 0 takes the likeliest token"},
	{"top-k", "train.top_k", "draw from so many likeliest tokens; 0 is all"},
	{"top-p", "train.top_p", "draw from the fewest tokens that are together so likely; 1 is all"},
}

func sampleCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sample MODEL PROMPT...",
		Short: "Continue a text, on any mesh; keys and values are kept from token to token",
		Long:  "Continue a text. " + modelHelp + "\nThe same seed draws the same text on every mesh.",
		Example: `  triax sample runs/mine "func main() {" --tokens 50 --temperature 0
  triax sample models/qwen3-0.6b "Once upon a time" --top-p 0.9 --seed 3 --pp 2`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return requestError{fmt.Errorf("want a model and a prompt\nusage: %s", cmd.UseLine())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m, err := openModel(cmd, args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.close()) }()
			m.cfg.Train.Sample = strings.Join(args[1:], " ")
			closed, err := openDevices(m.cfg, &m.opts, launch.Place{})
			if err != nil {
				return err
			}
			defer closed()
			text, err := train.Generate(cmd.Context(), m.cfg, m.opts)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	addConfigFlags(cmd)
	for _, f := range sampleFlags {
		cmd.Flags().String(f.name, "", f.usage+" ("+f.key+")")
	}
	return cmd
}
