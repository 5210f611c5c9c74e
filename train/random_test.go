package train

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"triax/configs"
)

// TestRandomMeshes trains random legal configurations and compares each with the uncut model. A failure prints the seed; TRIAX_SEED
// repeats it alone, and TRIAX_MESHES sets how many are tried.
func TestRandomMeshes(t *testing.T) {
	n, first := 50, uint64(1000)
	if testing.Short() {
		n = 10
	}
	if text := os.Getenv("TRIAX_MESHES"); text != "" {
		v, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("TRIAX_MESHES: %v", err)
		}
		n = v
	}
	if text := os.Getenv("TRIAX_SEED"); text != "" {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TRIAX_SEED: %v", err)
		}
		n, first = 1, v
	}
	var cache uncutCache
	var worst difference
	for seed := first; seed < first+uint64(n); seed++ {
		c := randomConfig(seed)
		corpus := letters(t, c.Model.Vocab, gridTokens)
		got, _, err := tryCutRun(c, corpus)
		if err != nil {
			t.Errorf("seed %d: %s: %v", seed, label(c), err)
			continue
		}
		d := compare(got, cache.get(t, c, corpus))
		if d.relative > equalTo {
			t.Errorf("seed %d: %s: relative difference %.3g at %s", seed, label(c), d.relative, d.where)
		}
		worst.see(d.relative, "seed %d: %s", seed, label(c))
	}
	t.Logf("%d random meshes, worst relative difference %.2g: %s", n, worst.relative, worst.where)
}

// randomConfig draws configurations until one is legal.
func randomConfig(seed uint64) *configs.Config {
	rng := rand.New(rand.NewPCG(seed, 1))
	for {
		c := base()
		c.Mesh.PP, c.Mesh.DP, c.Mesh.TP, c.Mesh.CP = 1+rng.IntN(4), 1+rng.IntN(4), 1+rng.IntN(4), 1+rng.IntN(2)
		c.Zero.Stage = rng.IntN(4)
		if c.Mesh.World() > 24 {
			continue
		}
		arrange(c, rng.IntN(1_000_000))
		c.Train.Seed = 1 + rng.Uint64N(3)
		rng.Shuffle(len(c.Mesh.Axes), func(i, j int) { c.Mesh.Axes[i], c.Mesh.Axes[j] = c.Mesh.Axes[j], c.Mesh.Axes[i] })
		c.Mesh.Axes = append([]string(nil), c.Mesh.Axes...)
		if err := configs.Resolved(c).Validate(); err == nil {
			return c
		}
	}
}
