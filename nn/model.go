package nn

import (
	"fmt"
	"math"
)

// A model is a flat list of layers, so that cutting a pipeline is choosing runs of it:
//
//	0          1 … L     L+1    L+2    L+3
//	embedding  blocks    norm   head   loss
//
// Count is its length.
func Count(cfg Config) int { return cfg.Layers + 4 }

// Build makes the layers of one rank: runs are the stretches [from, to) of the flat list that it holds, and the result
// has a list for each. Where token table and output matrix are tied and both here, they are one Param; where only one of them is,
// its Param says Tied, and the copy at the head is not Counted. cfg must be resolved and valid.
func Build(cfg Config, kit Kit, runs [][2]int) ([][]Layer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := &builder{cfg: cfg, kit: kit, tied: cfg.Tied && holds(runs, 0) != holds(runs, cfg.Layers+2)}
	out := make([][]Layer, len(runs))
	for i, r := range runs {
		if r[0] < 0 || r[1] > Count(cfg) || r[0] > r[1] {
			return nil, fmt.Errorf("layers %d to %d of a model of %d", r[0], r[1], Count(cfg))
		}
		for at := r[0]; at < r[1]; at++ {
			out[i] = append(out[i], b.layer(at))
		}
		if cfg.LoRARank > 0 {
			freeze(out[i])
		}
	}
	return out, nil
}

// Whole is the uncut model on one rank.
func Whole(cfg Config) ([]Layer, error) {
	out, err := Build(cfg, Serial{}, [][2]int{{0, Count(cfg)}})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func holds(runs [][2]int, at int) bool {
	for _, r := range runs {
		if r[0] <= at && at < r[1] {
			return true
		}
	}
	return false
}

type builder struct {
	cfg   Config
	kit   Kit
	tied  bool   // the other copy is on another rank
	table *Param // shared by embedding and head when tied
}

func (b *builder) layer(at int) Layer {
	c := b.cfg
	switch at {
	case 0:
		return newInput(c, b.kit, b.embeddingTable())
	case c.Layers + 1:
		return newNorm(c, b.kit, "norm")
	case c.Layers + 2:
		return b.kit.Head(b.headTable())
	case c.Layers + 3:
		return b.kit.Loss(c.Vocab)
	}
	return newBlock(c, b.kit, at-1)
}

const tableName = "embedding.weight"

func (b *builder) embeddingTable() *Param {
	if b.table == nil {
		b.table = b.kit.Table(tableName, b.cfg.Vocab, b.cfg.Width, Init{Std: b.cfg.InitStd})
		b.table.Tied = b.tied
	}
	return b.table
}

func (b *builder) headTable() *Param {
	if !b.cfg.Tied {
		return b.kit.Table("head.weight", b.cfg.Vocab, b.cfg.Width, Init{Std: b.cfg.InitStd})
	}
	p := b.embeddingTable()
	if b.tied {
		p.Counted = false
	}
	return p
}

// residualInit makes the matrices that write into the residual stream smaller, since L layers add up twice each
// (Radford et al. 2019, §2.3).
func residualInit(cfg Config) Init { return Init{Std: cfg.InitStd / math.Sqrt(2*float64(cfg.Layers))} }
