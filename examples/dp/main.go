// Command dp tells data parallelism: two ranks hold the whole model, each sees half of the batch, and one all-reduce makes
// their gradients the whole batch's.
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
)

const rows, in = 8, 4 // samples of the global batch, features

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	ctx := context.Background()
	whole, err := gradient(ctx, comm.Solo("data", 0), 0, rows)
	if err != nil {
		return err
	}
	world := local.New(2)
	defer world.Close()
	parts := make([][]float64, 2)
	ranks, ctx := errgroup.WithContext(ctx)
	for rank := range 2 {
		ranks.Go(func() error {
			wire := world.Rank(rank, tensor.NewHeap(nil, false))
			group, err := comm.NewGroup(ctx, wire, "data", "data", []int{0, 1}, nil)
			if err != nil {
				return err
			}
			// This rank's samples: half of them. The loss of both is divided by the samples of the whole batch, so sums are all it takes.
			parts[rank], err = gradient(ctx, group, rank*rows/2, (rank+1)*rows/2)
			return err
		})
	}
	if err := ranks.Wait(); err != nil {
		return err
	}
	worst := 0.0
	for i, g := range whole {
		worst = max(worst, math.Abs(parts[0][i]-g), math.Abs(parts[1][i]-g))
	}
	fmt.Fprintf(out, "gradient of one rank    %.4f %.4f ...\nafter the all-reduce    %.4f %.4f ... on rank 0 and on rank 1\n",
		whole[0], whole[1], parts[0][0], parts[1][1])
	_, err = fmt.Fprintf(out, "equal to 1e-15: %v\n", worst < 1e-15)
	return err
}

// gradient is that of the mean square of a linear layer's outputs over the whole batch, of which samples lo up to hi are here.
func gradient(ctx context.Context, group *comm.Group, lo, hi int) ([]float64, error) {
	dev := cpu.New(cpu.Options{Float: tensor.F64})
	defer dev.Close()
	layer := nn.Serial{}.Column("layer", in, nn.Part{Out: 2, Init: nn.Init{Std: 1}})
	w := layer.Params()[0]
	w.Data, w.Grad = dev.New(tensor.Parameters, w.Local...), dev.New(tensor.Gradients, w.Local...)
	nn.Fill(dev, w, 1) // a function of the seed: the same on every rank
	dev.Zero(w.Grad)

	x := dev.New(tensor.Activations, hi-lo, in)
	values := make([]float64, 0, x.Len())
	for i := lo * in; i < hi*in; i++ {
		values = append(values, math.Sin(float64(i)))
	}
	dev.Upload(x, values)
	c := &nn.Ctx{Context: ctx, Dev: dev}
	ys, saved, err := layer.Forward(c, x)
	if err != nil {
		return nil, err
	}
	dev.Scale(ys[0], 2.0/rows) // dy, of y²/rows: the only division
	dx, err := layer.BackwardInput(c, saved, ys)
	if err != nil {
		return nil, err
	}
	dx.Release()
	if err = layer.BackwardWeight(c, saved); err == nil {
		err = group.AllReduce(ctx, w.Grad, comm.Sum)
	}
	sum := make([]float64, w.Len())
	dev.Download(sum, w.Grad)
	return sum, err
}
