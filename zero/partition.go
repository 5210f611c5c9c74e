package zero

import (
	"fmt"

	"triax/nn"
)

// Unit is the parameters of one layer, in the order in which the rank's layers stand.
type Unit struct {
	Stage  int // virtual pipeline stage; buckets never span two
	Params []*nn.Param
}

// bucket is a flat run of parameters that is reduced, sharded and gathered as one.
//
//	| w ........ | b | v .... |pad|      padded to a multiple of the group
//	|  rank 0  |  rank 1  |  rank 2  |   shards ignore parameter borders
type bucket struct {
	params []*nn.Param
	offset []int       // of each parameter in the flat memory
	len    int         // without padding
	padded int         // multiple of the number of shards
	units  []int       // that use it
	uses   map[int]int // number of units of each virtual stage that use it
	tied   bool
	expert bool // sharded and summed over the data axes without the expert axis
	frozen bool // has neither gradients nor optimizer state

	mem memory
}

func (b *bucket) String() string {
	return fmt.Sprintf("bucket(%s and %d more, %d elements)", b.params[0].Name, len(b.params)-1, b.len)
}

// partition forms buckets from units and tells which buckets each unit uses. A parameter that several
// units share is in one bucket. Tied parameters get a bucket of their own, because its shards must
// have the same borders on all pipeline ranks that hold a copy.
// Experts' parameters have buckets of their own too: they are summed over other groups. So have those that do not learn.
func partition(units []Unit, cfg Config, shards func(expert bool) int) (buckets []*bucket, of [][]*bucket) {
	limit := cfg.BucketElements
	if limit == 0 {
		limit = DefaultBucket
	}
	home := map[*nn.Param]*bucket{}
	type sort struct{ expert, frozen bool }
	opened := map[sort]*bucket{} // the open one of each
	openStage := -1
	count := paramUses(units)
	for _, u := range units {
		if cfg.Stage == 3 || u.Stage != openStage {
			clear(opened)
			openStage = u.Stage
		}
		for _, p := range u.Params {
			if home[p] != nil {
				continue
			}
			at := sort{p.Expert(), p.Frozen}
			b := opened[at]
			if p.Tied || count[p] > 1 {
				b = &bucket{tied: p.Tied, frozen: p.Frozen}
				buckets = append(buckets, b)
			} else if b == nil || (cfg.Stage < 3 && b.len > 0 && b.len+p.Len() > limit) {
				b = &bucket{expert: at.expert, frozen: at.frozen}
				buckets = append(buckets, b)
				opened[at] = b
			}
			b.offset = append(b.offset, b.len)
			b.params = append(b.params, p)
			b.len += p.Len()
			home[p] = b
		}
	}
	for _, b := range buckets {
		n := shards(b.expert)
		b.padded = (b.len + n - 1) / n * n
		b.uses = map[int]int{}
	}
	return buckets, bucketsOf(units, home)
}

func paramUses(units []Unit) map[*nn.Param]int {
	count := map[*nn.Param]int{}
	for _, u := range units {
		for _, p := range u.Params {
			count[p]++
		}
	}
	return count
}

// bucketsOf lists each unit's buckets in a fixed order, and counts how many units of each stage use a bucket.
func bucketsOf(units []Unit, home map[*nn.Param]*bucket) [][]*bucket {
	of := make([][]*bucket, len(units))
	for i, u := range units {
		seen := map[*bucket]bool{}
		for _, p := range u.Params {
			b := home[p]
			if seen[b] {
				continue
			}
			seen[b] = true
			of[i] = append(of[i], b)
			b.units = append(b.units, i)
			b.uses[u.Stage]++
		}
	}
	return of
}

// piece is the part of a parameter that lies in a range of its bucket.
type piece struct {
	param  *nn.Param
	lo, hi int // elements of the parameter's local memory
	at     int // where lo lies in the bucket's flat memory
}

// pieces lists the parts of parameters in elements lo up to hi of the bucket, in order. Padding is in none.
func (b *bucket) pieces(lo, hi int) []piece {
	var out []piece
	for i, p := range b.params {
		from, to := max(lo, b.offset[i]), min(hi, b.offset[i]+p.Len())
		if from < to {
			out = append(out, piece{param: p, lo: from - b.offset[i], hi: to - b.offset[i], at: from})
		}
	}
	return out
}
