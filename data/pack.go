package data

import (
	"fmt"
	"math/bits"
	"slices"
)

// pack lays whole examples into samples of seq tokens: the longest first, each where it leaves the least room (best-fit decreasing; Ding et
// al. 2024, §3, for training data). Same examples, same packs.
//
//	| prompt answer | prompt ans | pr answer answer | . |
//	 starts at 0     14           25                  42  padding: its own document, no target
func pack(list []example, seq int) [][]example {
	order := slices.Clone(list)
	slices.SortStableFunc(order, func(a, b example) int { return b.inputs() - a.inputs() })
	open := newRooms(seq)
	var packs [][]example
	for _, e := range order {
		room, at := open.take(e.inputs())
		if at < 0 {
			room, at = seq, len(packs)
			packs = append(packs, nil)
		}
		packs[at] = append(packs[at], e)
		open.add(room-e.inputs(), at)
	}
	return packs
}

// rooms finds the open pack with the least room that suffices.
type rooms struct {
	packs [][]int  // by room
	some  []uint64 // bit r: packs[r] is not empty
}

func newRooms(seq int) *rooms { return &rooms{make([][]int, seq+1), make([]uint64, seq/64+1)} }

func (r *rooms) add(room, pack int) {
	if room == 0 {
		return // full
	}
	r.packs[room] = append(r.packs[room], pack)
	r.some[room/64] |= 1 << (room % 64)
}

// take removes and returns a pack with room for n; -1 where there is none.
func (r *rooms) take(n int) (room, pack int) {
	word := r.some[n/64] >> (n % 64) << (n % 64)
	for i := n / 64; ; word = r.some[i] {
		if word != 0 {
			room = i*64 + bits.TrailingZeros64(word)
			break
		}
		if i++; i == len(r.some) {
			return 0, -1
		}
	}
	list := r.packs[room]
	pack = list[len(list)-1]
	if r.packs[room] = list[:len(list)-1]; len(list) == 1 {
		r.some[room/64] &^= 1 << (room % 64)
	}
	return room, pack
}

// fit brings examples down to samples of seq tokens, as long says.
func fit(list []example, seq int, long string) (out []example, err error) {
	over := 0
	longest := 0
	for _, e := range list {
		if e.inputs() > seq {
			over++
			longest = max(longest, e.inputs())
			if long == Drop || e.answer-e.lo > seq { // what is left of a cut one has nothing to learn
				continue
			}
			e.hi = e.lo + seq + 1
		}
		out = append(out, e)
	}
	if over > 0 && long == Refuse {
		return nil, Problems{{"data.long", `"refuse"`, fmt.Sprintf("%d of %d examples are longer than model.sequence = %d, the longest %d tokens", over, len(list), seq, longest),
			fmt.Sprintf(`use model.sequence = %d, or data.long = "cut" or "drop"`, longest)}}
	}
	return out, nil
}

// packed is one pack as a sample.
func (s *Set) packed(window, epoch int) Sample {
	x := Sample{Window: window, Epoch: epoch, Tokens: make([]int32, s.seq), Targets: make([]int32, s.seq)}
	at := 0
	if window >= 0 {
		for _, e := range s.packs[window] {
			x.Starts = append(x.Starts, at)
			for i := e.lo; i < e.hi-1; i++ {
				x.Tokens[at], x.Targets[at] = s.tokens[i], Masked
				if i+1 >= e.answer {
					x.Targets[at] = s.tokens[i+1]
					x.Valid++
				}
				at++
			}
		}
	}
	if at < s.seq {
		x.Starts = append(x.Starts, at)
	}
	for ; at < s.seq; at++ {
		x.Tokens[at], x.Targets[at] = s.end, Masked
	}
	if s.joined {
		x.Starts = nil
	}
	return x
}

// borders finds where the documents of a window begin, and masks what would be predicted across a border.
func (s *Set) borders(x *Sample) {
	x.Targets = slices.Clone(x.Targets)
	x.Starts = []int{0}
	for i, id := range x.Tokens {
		if id != s.end {
			continue
		}
		if x.Targets[i] != Masked {
			x.Targets[i] = Masked
			x.Valid--
		}
		if i+1 < s.seq {
			x.Starts = append(x.Starts, i+1)
		}
	}
}
