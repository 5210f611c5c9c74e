package zero

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"triax/mesh"
	"triax/nn"
)

// TestPartition: every parameter lies in one bucket, borders are padded to the group, pieces of all shards cover everything once, and
// tied, shared and expert parameters have buckets of their own kind (B31).
func TestPartition(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		shards := [2]int{1 + rng.IntN(9), 1 + rng.IntN(4)}
		cfg := Config{Stage: rng.IntN(4), BucketElements: 1 + rng.IntN(60)}
		units := randomUnits(rng)
		buckets, of := partition(units, cfg, func(expert bool) int {
			if expert {
				return shards[1]
			}
			return shards[0]
		})
		home := map[*nn.Param]*bucket{}
		for _, b := range buckets {
			checkBucket(t, b, shards)
			for _, p := range b.params {
				if home[p] != nil {
					t.Fatalf("%s lies in two buckets", p.Name)
				}
				home[p] = b
			}
		}
		for i, u := range units {
			seen := map[*bucket]bool{}
			for _, b := range of[i] {
				seen[b] = true
			}
			for _, p := range u.Params {
				if !seen[home[p]] {
					t.Fatalf("unit %d does not name the bucket of %s", i, p.Name)
				}
			}
		}
	}
}

func checkBucket(t *testing.T, b *bucket, shards [2]int) {
	t.Helper()
	g := shards[kindOf(b)]
	if b.padded%g != 0 || b.padded-b.len >= g || b.padded < b.len {
		t.Fatalf("%v: padded to %d for %d shards", b, b.padded, g)
	}
	covered := make([]int, b.len)
	for place := range g {
		s := b.padded / g
		for _, p := range b.pieces(place*s, (place+1)*s) {
			for i := p.at; i < p.at+p.hi-p.lo; i++ {
				covered[i]++
			}
		}
	}
	for i, n := range covered {
		if n != 1 {
			t.Fatalf("%v: element %d is in %d shards", b, i, n)
		}
	}
	for _, p := range b.params {
		if p.Expert() != b.expert {
			t.Fatalf("%v: mixes experts with others", b)
		}
		if p.Tied && len(b.params) > 1 {
			t.Fatalf("%v: a tied table shares its bucket", b)
		}
	}
}

func randomUnits(rng *rand.Rand) (units []Unit) {
	shared := &nn.Param{Name: "shared", Local: []int{1 + rng.IntN(40)}}
	for i := range 1 + rng.IntN(6) {
		u := Unit{Stage: i / 2}
		for j := range rng.IntN(5) {
			p := &nn.Param{Name: fmt.Sprintf("%d.%d", i, j), Local: []int{rng.IntN(30)}, Tied: rng.IntN(9) == 0}
			if rng.IntN(4) == 0 {
				p.Cut = []mesh.Axis{mesh.EP}
				p.Tied = false
			}
			u.Params = append(u.Params, p)
		}
		if rng.IntN(3) == 0 {
			u.Params = append(u.Params, shared)
		}
		units = append(units, u)
	}
	return units
}

func TestConfigNamesItsProblem(t *testing.T) {
	for _, c := range []Config{{Stage: -1}, {Stage: 4}, {BucketElements: -1}, {Prefetch: -2}} {
		if c.Validate() == nil {
			t.Errorf("%+v passes", c)
		}
	}
	if err := (Config{Stage: 3, Prefetch: 2}).Validate(); err != nil {
		t.Error(err)
	}
}
