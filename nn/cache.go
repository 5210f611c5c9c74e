package nn

import (
	"fmt"
	"math"

	"triax/tensor"
)

// Cache keeps the keys and values of tokens that a model has seen, so that the next token of each sample costs one row instead of a window. It is
// one rank's, and holds what this rank's heads and layers need; every rank of a mesh fills its own in the same calls.
//
//	first call   tokens 0 .. n-1    attention as ever, keys and values kept
//	then         token n, n+1, ...  one row a sample against all that is kept
type Cache struct {
	Room int // tokens a sample that it can hold
	Len  int // tokens that it holds; the caller adds those of a call when all layers have run

	layers map[string]*kept
}

// kept is one layer's keys and values: [samples KV Room hd].
type kept struct{ k, v *tensor.Tensor }

// Release gives the memory back.
func (c *Cache) Release() {
	for _, l := range c.layers {
		l.k.Release()
		l.v.Release()
	}
	c.layers, c.Len = nil, 0
}

// layer is where a layer's keys and values are kept.
func (c *Cache) layer(dev tensor.Device, name string, at tensor.Attention) *kept {
	if c.layers == nil {
		c.layers = map[string]*kept{}
	}
	l := c.layers[name]
	if l == nil {
		shape := []int{at.Samples, at.KVHeads, c.Room, at.HeadDim}
		l = &kept{dev.New(tensor.Activations, shape...), dev.New(tensor.Activations, shape...)}
		c.layers[name] = l
	}
	return l
}

// add keeps the keys and values of a call: k, v [samples*n KV*hd].
func (c *Cache) add(dev tensor.Device, l *kept, k, v *tensor.Tensor, at tensor.Attention) {
	if c.Len+at.Seq > c.Room {
		panic(fmt.Sprintf("nn: %d tokens more in a cache that holds %d of %d", at.Seq, c.Len, c.Room))
	}
	hd := at.HeadDim
	for s := range at.Samples {
		for h := range at.KVHeads {
			for t := range at.Seq {
				to := ((s*at.KVHeads+h)*c.Room + c.Len + t) * hd
				from := ((s*at.Seq+t)*at.KVHeads + h) * hd
				dev.Copy(l.k.Flat(to, to+hd), k.Flat(from, from+hd))
				dev.Copy(l.v.Flat(to, to+hd), v.Flat(from, from+hd))
			}
		}
	}
}

// attend is attention of one new token a sample over all that is kept, itself included: o, q [samples H*hd].
func (c *Cache) attend(dev tensor.Device, l *kept, o, q *tensor.Tensor, at tensor.Attention) {
	n, hd, group := c.Len+1, at.HeadDim, at.Heads/at.KVHeads
	scores := dev.New(tensor.Workspace, at.Samples*at.Heads, n)
	defer scores.Release()
	for i := range at.Samples * at.KVHeads { // with each key/value head goes a run of query heads
		lo, base := i*group, i*c.Room*hd
		dev.Gemm(scores.Rows(lo, lo+group), q.Part(lo*hd, (lo+group)*hd, group, hd), l.k.Part(base, base+n*hd, n, hd), false, true, 0)
	}
	softmaxRows(dev, scores, 1/math.Sqrt(float64(hd)))
	for i := range at.Samples * at.KVHeads {
		lo, base := i*group, i*c.Room*hd
		dev.Gemm(o.Part(lo*hd, (lo+group)*hd, group, hd), scores.Rows(lo, lo+group), l.v.Part(base, base+n*hd, n, hd), false, false, 0)
	}
}

// softmaxRows turns scores into weights on the host: a row a head, which is little.
func softmaxRows(dev tensor.Device, scores *tensor.Tensor, scale float64) {
	all := make([]float64, scores.Len())
	dev.Download(all, scores)
	n := scores.Shape[1]
	for i := range all {
		all[i] *= scale
	}
	for at := 0; at < len(all); at += n {
		softmax(all[at : at+n])
	}
	dev.Upload(scores, all)
}
