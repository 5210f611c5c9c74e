package tokenizer

import (
	"container/heap"
	"fmt"
	"unicode/utf8"
)

// bpe is the vocabulary and the merges.
type bpe struct {
	ids    map[string]int32
	texts  []string // by id; "" for one that stands for nothing
	merges map[[2]int32]merge
	// unk stands for a character that the vocabulary lacks, -1 where there is none; fuse makes a run of them one.
	unk  int32
	fuse bool
	// fallback spells a character that the vocabulary lacks in bytes[b].
	fallback bool
	bytes    [256]int32
	// whole takes a piece that is a token as it stands, merges or not.
	whole bool
}

// merge makes token into of a pair; those of lower rank come first.
type merge struct{ rank, into int32 }

// encode appends the ids of one piece.
func (b *bpe) encode(ids []int32, piece string) ([]int32, error) {
	if b.whole {
		if id, ok := b.ids[piece]; ok {
			return append(ids, id), nil
		}
	}
	from := len(ids)
	ids, err := b.symbols(ids, piece)
	if err != nil {
		return ids, err
	}
	return ids[:from+len(b.join(ids[from:]))], nil
}

// symbols appends the ids of a piece's characters.
func (b *bpe) symbols(ids []int32, piece string) ([]int32, error) {
	inUnknown := false
	for len(piece) > 0 {
		_, n := utf8.DecodeRuneInString(piece)
		char := piece[:n]
		piece = piece[n:]
		id, ok := b.ids[char]
		switch {
		case ok:
			ids, inUnknown = append(ids, id), false
		case b.fallback:
			for i := range len(char) {
				ids = append(ids, b.bytes[char[i]])
			}
			inUnknown = false
		case b.unk >= 0:
			if !inUnknown || !b.fuse {
				ids = append(ids, b.unk)
			}
			inUnknown = true
		default:
			return ids, fmt.Errorf("tokenizer: the vocabulary has no %q and nothing that stands for the unknown", char)
		}
	}
	return ids, nil
}

// pair is two neighbours that can be merged.
type pair struct{ rank, left, into int32 }

// pairs is a heap: lowest rank first, leftmost of equals.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].left < p[j].left
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pairs) Push(x any)   { *p = append(*p, x.(pair)) }
func (p *pairs) Pop() any {
	old := *p
	x := old[len(old)-1]
	*p = old[:len(old)-1]
	return x
}

// join merges ids in place and returns the shorter list. Neighbours are found through links, so that a long piece takes n log n.
func (b *bpe) join(ids []int32) []int32 {
	if len(ids) < 2 {
		return ids
	}
	next, prev := make([]int32, len(ids)), make([]int32, len(ids))
	var open pairs
	look := func(left int32) {
		if right := next[left]; right < int32(len(ids)) {
			if m, ok := b.merges[[2]int32{ids[left], ids[right]}]; ok {
				heap.Push(&open, pair{m.rank, left, m.into})
			}
		}
	}
	for i := range ids {
		next[i], prev[i] = int32(i+1), int32(i-1)
	}
	for i := range len(ids) - 1 {
		look(int32(i))
	}
	const gone = -1
	for len(open) > 0 {
		p := heap.Pop(&open).(pair)
		right := int32(len(ids))
		if ids[p.left] != gone {
			right = next[p.left]
		}
		if right == int32(len(ids)) {
			continue
		}
		if m, ok := b.merges[[2]int32{ids[p.left], ids[right]}]; !ok || m.rank != p.rank || m.into != p.into {
			continue // a neighbour has changed since
		}
		ids[p.left], ids[right] = p.into, gone
		next[p.left] = next[right]
		if n := next[right]; n < int32(len(ids)) {
			prev[n] = p.left
		}
		if prev[p.left] >= 0 {
			look(prev[p.left])
		}
		look(p.left)
	}
	out := ids[:0]
	for _, id := range ids {
		if id != gone {
			out = append(out, id)
		}
	}
	return out
}
