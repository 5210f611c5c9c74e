package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/launch"
)

// room is how many processes hosts take.
func room(hosts []launch.Host) (n int) {
	for _, h := range hosts {
		n += h.Slots
	}
	return n
}

// fewer is how many of a job's processes are started again where hosts are gone that have room for less: with train.elastic as many whole replicas as fit
// and the configuration's rules allow.
func fewer(args []string, n, left int) (int, error) {
	if left >= n {
		return n, nil
	}
	load, err := loader(args)
	if err != nil {
		return 0, err
	}
	cfg, err := load()
	if err != nil {
		return 0, err
	}
	if !cfg.Train.Elastic {
		return 0, fmt.Errorf("the hosts that answer take %d processes of %d, and train.elastic is not set", left, n)
	}
	replica := cfg.Mesh.World() / cfg.Mesh.DP
	why := fmt.Errorf("a replica has %d ranks", replica)
	for dp := min(left, n) / replica; dp >= 1; dp-- {
		_, err := load(fmt.Sprintf("mesh.dp=%d", dp))
		if err == nil {
			return dp * replica, nil
		}
		why = fmt.Errorf("mesh.dp = %d: %w", dp, err)
	}
	return 0, fmt.Errorf("train.elastic: the hosts that answer take %d processes of %d, and no smaller mesh fits: %v", left, n, why)
}

// loader reads the configuration of a train command as that command will.
func loader(args []string) (func(extra ...string) (*configs.Config, error), error) {
	if len(args) == 0 || args[0] != "train" {
		return nil, errors.New("only train knows of fewer ranks (train.elastic)")
	}
	var cmd *cobra.Command
	for _, c := range root().Commands() {
		if c.Name() == "train" {
			cmd = c
		}
	}
	if err := cmd.ParseFlags(args[1:]); err != nil {
		return nil, err
	}
	if cmd.Flags().NArg() != 1 {
		return nil, fmt.Errorf("train wants one CONFIG.toml, not %q", cmd.Flags().Args())
	}
	return func(extra ...string) (*configs.Config, error) { return loadConfig(cmd, cmd.Flags().Arg(0), extra...) }, nil
}
