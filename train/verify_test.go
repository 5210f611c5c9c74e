package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"triax/comm"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
	"triax/zero"
)

// TestVerifyFindsPlantedFaults: one changed bit in a copy of a weight, a moment or a gradient is found in the next check, which
// names the parameter and the ranks that should agree (B2, B35, B53).
func TestVerifyFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name        string
		pp, dp, tp  int
		stage       int
		rank        int
		param, what string // where the fault is planted
		ranks       string // that the error names
	}{
		{"replica weight", 1, 2, 1, 0, 1, "blocks.0.mlp.up.weight", "weight", "[0 1]"},
		{"replicated norm over tp", 1, 1, 2, 0, 1, "blocks.1.norm1.weight", "weight", "[0 1]"},
		{"norm over tp under zero 3", 1, 2, 2, 3, 3, "norm.bias", "weight", "[2 3]"},
		{"tied copy", 2, 1, 1, 0, 1, "embedding.weight", "weight", "[0 1]"},
		{"moment", 1, 2, 1, 0, 1, "blocks.0.attn.q.weight", "exp_avg", "[0 1]"},
		{"tied moment under zero 2", 2, 2, 1, 2, 3, "embedding.weight", "exp_avg_sq", "[1 3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := base()
			cfg.Mesh.PP, cfg.Mesh.DP, cfg.Mesh.TP, cfg.Zero.Stage = c.pp, c.dp, c.tp, c.stage
			cfg.Model.Tied, cfg.Train.Verify = true, true
			planted := false
			_, err := Run(context.Background(), cfg, Options{
				Corpus: letters(t, 17, gridTokens),
				Open:   func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) },
				OnWorker: func(step int, w *Worker) error {
					if step != 2 || w.wire.Rank() != c.rank {
						return nil
					}
					for p := range w.opt.Each {
						if p.Param.Name == c.param && !planted {
							planted = true
							nudge(w.dev, pieceOf(p, c.what, w.opt.StateNames()))
						}
					}
					return nil
				},
			})
			var u *zero.Unequal
			if !planted {
				t.Fatal("the fault was not planted")
			}
			if !errors.As(err, &u) {
				t.Fatalf("not found: %v", err)
			}
			// A wrong moment shows in the weight it makes; a wrong weight spoils gradients before it is compared itself.
			if !strings.HasSuffix(u.What, " of "+c.param) && !strings.HasPrefix(u.What, "gradient") {
				t.Errorf("%v does not name %s", err, c.param)
			}
			if !strings.Contains(err.Error(), "step 3") || !strings.Contains(err.Error(), c.ranks) {
				t.Errorf("%v does not name step 3 and ranks %s", err, c.ranks)
			}
		})
	}
}

func pieceOf(p zero.Piece, what string, names []string) *tensor.Tensor {
	for i, n := range names {
		if n == what {
			return p.State[i]
		}
	}
	return p.Weight
}

// TestVerifyFindsGradientFault: a gradient that one rank has not got right is found before it is used.
func TestVerifyFindsGradientFault(t *testing.T) {
	for _, c := range []struct {
		pp, dp, replicate, tp, stage int
		rank                         int
		param                        string
	}{
		{1, 2, 1, 1, 0, 1, "blocks.0.attn.out.weight"},
		{1, 1, 1, 2, 0, 1, "blocks.1.norm2.bias"},
		{2, 1, 1, 1, 0, 1, "embedding.weight"},
		{1, 1, 2, 1, 3, 0, "blocks.1.mlp.down.bias"},
	} {
		cfg := base()
		cfg.Mesh.PP, cfg.Mesh.DP, cfg.Mesh.Replicate, cfg.Mesh.TP, cfg.Zero.Stage = c.pp, c.dp, c.replicate, c.tp, c.stage
		cfg.Model.Tied, cfg.Train.Verify = true, true
		_, err := Run(context.Background(), cfg, Options{
			Corpus: letters(t, 17, gridTokens),
			Open:   func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) },
			OnWorker: func(step int, w *Worker) error {
				if step == 0 && w.wire.Rank() == c.rank {
					w.opt.Observe = func(p *nn.Param, _ int, grad *tensor.Tensor) {
						if p.Name == c.param {
							nudge(w.dev, grad)
						}
					}
				}
				return nil
			},
		})
		var u *zero.Unequal
		if !errors.As(err, &u) || u.What != "gradient of "+c.param {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// nudge changes the first element by one unit in the last place or so.
func nudge(dev tensor.Device, x *tensor.Tensor) {
	v := download(dev, x)
	v[0] += 1e-15 + v[0]*1e-15
	dev.Upload(x, v)
}

// TestVerifyPassesAndChangesNothing: the checks find nothing in a sound run and change no bit of it.
func TestVerifyPassesAndChangesNothing(t *testing.T) {
	c := base()
	c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Zero.Stage, c.Model.Tied = 2, 2, 2, 2, true
	corpus := letters(t, 17, gridTokens)
	want, _ := cutRun(t, c, corpus)
	checked := *c
	checked.Train.Verify = true
	got, _ := cutRun(t, &checked, corpus)
	if d := compare(got, want); d.relative != 0 {
		t.Errorf("relative difference %.3g at %s", d.relative, d.where)
	}
}

// quiet is a transport whose groups do nothing.
type quiet struct{ comm.Transport }

func (quiet) Join(context.Context, string, []int) (comm.Collective, error) { return silent{}, nil }

type silent struct{ comm.Collective }

func (silent) Barrier(context.Context) (comm.Times, error) { return comm.Times{}, nil }

// TestVerifyFindsAnotherSequence: a rank that has called one collective more than its peers is named, with what it called (B76, B78).
func TestVerifyFindsAnotherSequence(t *testing.T) {
	c := base()
	c.Mesh.DP, c.Mesh.TP, c.Train.Verify = 2, 2, true
	_, err := Run(context.Background(), c, Options{
		Corpus: letters(t, 17, gridTokens),
		Open:   func(int) tensor.Device { return cpu.New(cpu.Options{Float: tensor.F64}) },
		OnWorker: func(step int, w *Worker) error {
			if step != 1 || w.wire.Rank() != 3 {
				return nil
			}
			g, err := comm.Recorded(quiet{}, w.recorder).Join(context.Background(), "tp [2 3]", []int{2, 3})
			if err != nil {
				return err
			}
			_, err = g.Barrier(context.Background())
			return err
		},
	})
	if err == nil || !strings.Contains(err.Error(), "group tp [2 3]") || !strings.Contains(err.Error(), "rank 3 has called other collectives than rank 2") {
		t.Errorf("got %.400v", err)
	}
}
