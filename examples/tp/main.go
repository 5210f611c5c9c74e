// Command tp tells tensor parallelism: a column-cut matrix makes a slice of the hidden features on each rank, a row-cut one makes a
// partial sum of the output from it, and one all-reduce adds them up (Shoeybi et al. 2019, §3).
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"golang.org/x/sync/errgroup"

	"triax/comm"
	"triax/comm/local"
	"triax/cpu"
	"triax/nn"
	"triax/tensor"
	"triax/tp"
)

const tokens, width, hidden, ranks = 3, 8, 16, 4

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	ctx := context.Background()
	want, held, err := mlp(ctx, nn.Serial{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "one rank:   %3d weights, y = %.6f %.6f ...\n", held, want[0], want[1])
	world := local.New(ranks)
	defer world.Close()
	ledger := &comm.Ledger{}
	ys, sizes := make([][]float64, ranks), make([]int, ranks)
	g, ctx := errgroup.WithContext(ctx)
	for rank := range ranks {
		g.Go(func() error {
			wire := world.Rank(rank, tensor.NewHeap(nil, false))
			group, err := comm.NewGroup(ctx, wire, "tp", "tp", []int{0, 1, 2, 3}, ledger)
			if err != nil {
				return err
			}
			ys[rank], sizes[rank], err = mlp(ctx, tp.Kit{Group: group})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	worst := 0.0
	for i, y := range ys[3] {
		worst = max(worst, math.Abs(y-want[i]))
	}
	fmt.Fprintf(out, "four ranks: %3d weights each, y = %.6f %.6f ... on every rank\n", sizes[0], ys[3][0], ys[3][1])
	fmt.Fprintf(out, "paid by the four: %v\n", ledger.Entries()[0])
	_, err = fmt.Fprintf(out, "equal to 1e-15: %v\n", worst < 1e-15)
	return err
}

// mlp is down(gelu(up(x))), written once: the kit decides whether the matrices are whole or this rank's slices.
func mlp(ctx context.Context, kit nn.Kit) (y []float64, held int, err error) {
	dev := cpu.New(cpu.Options{Float: tensor.F64})
	defer dev.Close()
	up := kit.Column("up", width, nn.Part{Out: hidden, Init: nn.Init{Std: 0.5}})
	down := kit.Row("down", hidden, nn.Part{Out: width, Init: nn.Init{Std: 0.5}})
	for _, p := range append(up.Params(), down.Params()...) {
		p.Data = dev.New(tensor.Parameters, p.Local...)
		nn.Fill(dev, p, 1) // each rank fills in its slice of the same whole matrix
		held += p.Held()
	}
	x := dev.New(tensor.Activations, tokens, width)
	var values []float64
	for i := range x.Len() {
		values = append(values, math.Cos(float64(i)))
	}
	dev.Upload(x, values)
	c := &nn.Ctx{Context: ctx, Dev: dev}
	h, _, err := up.Forward(c, x)
	if err != nil {
		return nil, 0, err
	}
	a := dev.New(tensor.Activations, h[0].Shape...)
	dev.Gelu(a, h[0]) // between the two matrices nothing crosses ranks
	ys, _, err := down.Forward(c, a)
	if err != nil {
		return nil, 0, err
	}
	y = make([]float64, ys[0].Len())
	dev.Download(y, ys[0])
	return y, held, nil
}
