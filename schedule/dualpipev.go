package schedule

// DualPipeV is DeepSeek's DualPipe folded into a V: two chunks a rank, there and back, with forwards of one direction
// beside backwards of the other (DeepSeek-AI 2024, DeepSeek-V3 report §3.2.1, and the DualPipe notes). It needs
// at least 2p microbatches. It holds p+1/2 microbatches of both chunks together, up to 2p+1 of a chunk.
//
//	warm-up   F0 …            2(p-1-r) times     then  F0 F1        r+1 times
//	turn      I1 W1 F1        p-1-r times
//	steady    F0 B1 F1 B0     m-2p+r+1 times
//	drain     B1 F1 B0        p-1-r times        then  B1 B0        r+1 times, the second half split
//	tail      W I0            p-1-r times        then  W            until none is left
func DualPipeV(p, m int) *Schedule {
	s := vee("dualpipe-v", p, m)
	for r := range s.Ranks {
		d := &dual{s: s, r: r, stage: [2]int{r, 2*p - 1 - r}}
		d.rank(p, m)
		s.Ranks[r] = d.ops
	}
	return s.finish()
}

// dual writes one rank's list.
type dual struct {
	s     *Schedule
	r     int
	stage [2]int // of the chunks
	f, b  [2]int // microbatches run so far, by chunk
	owed  []Op   // weight gradients, oldest first
	ops   []Op
}

func (d *dual) rank(p, m int) {
	far := p - 1 - d.r
	for range 2 * far {
		d.forward(0)
	}
	for range d.r + 1 {
		d.forward(0)
		d.forward(1)
	}
	for range far {
		d.split(1)
		d.weight()
		d.forward(1)
	}
	for range m - 2*p + d.r + 1 {
		d.forward(0)
		d.whole(1)
		d.forward(1)
		d.whole(0)
	}
	for range far {
		d.whole(1)
		d.forward(1)
		d.whole(0)
	}
	d.drain()
	for range far {
		d.weight()
		d.split(0)
	}
	for len(d.owed) > 0 {
		d.weight()
	}
}

// drain alternates the chunks' last backwards; from half way on they leave their weight gradients for later.
func (d *dual) drain() {
	n := d.r + 1
	late := false
	for i := range n {
		if i == n/2 && n%2 == 0 {
			late = true
		}
		d.back(1, late)
		if i == n/2 && n%2 == 1 {
			late = true
		}
		d.back(0, late)
	}
}

func (d *dual) back(chunk int, late bool) {
	if late {
		d.split(chunk)
	} else {
		d.whole(chunk)
	}
}

func (d *dual) forward(chunk int) {
	d.ops = append(d.ops, Op{d.stage[chunk], F, d.f[chunk]})
	d.f[chunk]++
}

func (d *dual) whole(chunk int) {
	d.ops = append(d.ops, Op{d.stage[chunk], B, d.b[chunk]})
	d.b[chunk]++
}

func (d *dual) split(chunk int) {
	d.ops = append(d.ops, Op{d.stage[chunk], I, d.b[chunk]})
	d.owed = append(d.owed, Op{d.stage[chunk], W, d.b[chunk]})
	d.b[chunk]++
}

func (d *dual) weight() {
	d.ops = append(d.ops, d.owed[0])
	d.owed = d.owed[1:]
}
