package cpu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"triax/tensor"
)

func TestZZ(t *testing.T) {
	shapes := [][3]int{{512, 768, 768}, {512, 3072, 768}, {512, 768, 3072}, {1024, 1024, 1024}, {2048, 2048, 2048}, {256, 384, 384}, {256, 768, 768}, {256, 50304, 768}, {64, 64, 64}}
	forms := []string{"NT", "NN", "TN"}
	if os.Getenv("ZF") != "" {
		forms = []string{os.Getenv("ZF")}
	}
	nth := []int{1, 2}
	if os.Getenv("ZT") != "" {
		nth = []int{int(os.Getenv("ZT")[0] - '0')}
	}
	for _, threads := range nth {
		for _, s := range shapes {
			line := fmt.Sprintf("%d thr %v: ", threads, s)
			for _, form := range forms {
				d := New(Options{Float: tensor.F32, Threads: threads, Spin: true, HugePages: true})
				c, x, y := gemmCase(d, rand.New(rand.NewPCG(1, 1)), s[0], s[1], s[2], form[0] == 'T', form[1] == 'T')
				flop := 2 * float64(s[0]) * float64(s[1]) * float64(s[2])
				n := int(max(1, 4e9/flop))
				if n > 2000 { n = 2000 }
				d.Gemm(c, x, y, form[0] == 'T', form[1] == 'T', 0)
				var ratios, rates []float64
				for range 9 {
					p := Peak(threads)
					d.Gemm(c, x, y, form[0] == 'T', form[1] == 'T', 0)
					st := time.Now()
					for range n {
						d.Gemm(c, x, y, form[0] == 'T', form[1] == 'T', 0)
					}
					r := flop * float64(n) / time.Since(st).Seconds() / 1e9
					p = max(p, Peak(threads))
					rates = append(rates, r)
					ratios = append(ratios, 100*r/p)
				}
				slices.Sort(ratios)
				slices.Sort(rates)
				line += fmt.Sprintf("%s %.0f%% (best %.0f%%, %.0f)  ", form, ratios[4], ratios[8], rates[8])
				d.Close()
				for _, t := range []*tensor.Tensor{c, x, y} {
					t.Release()
				}
			}
			fmt.Println(line)
		}
	}
}
