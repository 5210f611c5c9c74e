package schedule

// LoopedBFS is breadth-first over v chunks a rank: every chunk takes all microbatches before the next chunk
// begins, forward and then backward (Lamy-Poirier 2023, "Breadth-First Pipeline Parallelism"). It idles as
// little as interleaved 1F1B and holds all microbatches of all chunks, as GPipe does; in return the
// parameters of a chunk are needed once forward and once backward, so sharded parameters are gathered but
// twice, and a chunk's reduction starts as soon as its last backward is done.
func LoopedBFS(p, m, v int) *Schedule {
	s := looped("looped-bfs", p, m, v)
	for r := range s.Ranks {
		ops := make([]Op, 0, 2*m*v+v+1)
		for c := range v {
			for i := range m {
				ops = append(ops, Op{c*p + r, F, i})
			}
		}
		for c := v - 1; c >= 0; c-- {
			for i := range m {
				ops = append(ops, Op{c*p + r, B, i})
			}
		}
		s.Ranks[r] = ops
	}
	return s.finish()
}
