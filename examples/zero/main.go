// Command zero measures what each ZeRO stage saves and what it costs: memory of a rank and bytes on the data axis, for one and for
// four ranks (Rajbhandari et al. 2020, §5 and §7).
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"triax/comm"
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
	corpus, err := data.Of(data.Bytes{}, 0, strings.Repeat("Replicas repeat themselves. ", 200))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ZeRO  ranks  parameters  gradients  optimizer  bytes on the data axis   loss")
	for stage := range 4 {
		for _, ranks := range []int{1, 4} {
			cfg := configs.Default()
			cfg.Mesh.DP, cfg.Zero.Stage = ranks, stage
			cfg.Train.Steps, cfg.Train.EvalBatches = 3, 0
			res, err := train.Run(context.Background(), cfg, train.Options{Corpus: corpus})
			if err != nil {
				return err
			}
			m := res.Memory[0]
			fmt.Fprintf(out, "%4d %6d %11d %10d %10d %24.0f   %.3f\n",
				stage, ranks, m.Parameters, m.Gradients, m.Optimizer, moved(res.Comm)/float64(ranks), res.Loss[2])
		}
	}
	return nil
}

// moved is what a step puts on the wire along the data axis.
func moved(entries []comm.Entry) float64 {
	sum := 0.0
	for _, e := range entries {
		if e.Axis == "dp" || e.Axis == "data" {
			sum += e.Wire
		}
	}
	return sum
}
