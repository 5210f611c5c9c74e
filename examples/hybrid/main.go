// Command hybrid cuts one model along every axis at once and trains it beside the uncut one: two pipeline stages, two tensor
// ranks, two data ranks with ZeRO-3. The losses are the same.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"triax/configs"
	"triax/data"
	"triax/train"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	corpus, err := data.Of(data.Bytes{}, 0, strings.Repeat("One model, cut three ways. ", 300))
	if err != nil {
		return err
	}
	whole := config()
	cut := config()
	cut.Mesh.PP, cut.Mesh.TP, cut.Mesh.DP = 2, 2, 2
	cut.Pipeline.Schedule, cut.Pipeline.Microbatches = "zb-h1", 4
	cut.Zero.Stage, cut.Zero.Overlap = 3, true

	a, err := train.Run(context.Background(), whole, train.Options{Corpus: corpus})
	if err != nil {
		return err
	}
	b, err := train.Run(context.Background(), cut, train.Options{Corpus: corpus})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "step   %-12s %s\n", a.Mesh, b.Mesh)
	for i := range a.Loss {
		fmt.Fprintf(out, "%4d   %.6f     %.6f\n", i+1, a.Loss[i], b.Loss[i])
	}
	fmt.Fprintf(out, "states of a rank: %d bytes, cut %d\n", states(a.Memory[0]), states(b.Memory[0]))
	return nil
}

// config is a small model in float64, where a difference between the two would show.
func config() *configs.Config {
	c := configs.Default()
	c.Model.Layers, c.Train.Steps, c.Train.Device, c.Train.EvalBatches = 4, 5, "float64", 0
	c.Optim.LR = 3e-3
	return c
}

func states(m train.Memory) int64 { return m.Parameters + m.Gradients + m.Optimizer }
