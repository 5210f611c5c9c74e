package configs

import (
	"fmt"

	"triax/nn"
	"triax/schedule"
)

// Runs gives each virtual stage its run of the flat layer list: its blocks, with the embedding
// before the first and norm, head and loss after the last.
func Runs(cfg *Config, stages int) ([][2]int, error) {
	blocks := cfg.Pipeline.Layers
	if len(blocks) == 0 {
		blocks = evenOrByCost(cfg, stages)
	}
	if len(blocks) != stages {
		return nil, fmt.Errorf("pipeline.layers = %v: %d entries for %d virtual stages", blocks, len(blocks), stages)
	}
	total := nn.Count(cfg.Model)
	before := 1
	runs := make([][2]int, stages)
	at := before
	for s, n := range blocks {
		runs[s] = [2]int{at, at + n}
		at += n
	}
	runs[0][0] = 0
	runs[stages-1][1] = total
	return runs, nil
}

// evenOrByCost cuts the blocks as pipeline.balance says: in equal numbers, or in equal work with the output matrix counted.
func evenOrByCost(cfg *Config, stages int) []int {
	if cfg.Pipeline.Balance != "cost" {
		return schedule.CutEven(cfg.Model.Layers, stages)
	}
	block, head := nn.MACs(cfg.Model)
	costs := make([]float64, cfg.Model.Layers)
	for i := range costs {
		costs[i] = block
	}
	return schedule.CutByCost(costs, 0, head, stages)
}
