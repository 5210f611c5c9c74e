package nn

// evenRoute sends tokens to experts in turn: what is assumed where the router's values are not known, as on paper.
// Every expert then gets the same number of slots, up to one.
func evenRoute(rows, experts, k int) *route {
	r := &route{counts: make([]int, experts)}
	byExpert := make([][]int32, experts)
	for i := range rows * k {
		byExpert[i%experts] = append(byExpert[i%experts], int32(i/k))
	}
	for e, list := range byExpert {
		r.counts[e] = len(list)
		r.tokens = append(r.tokens, list...)
		for range list {
			r.expert = append(r.expert, int32(e))
		}
	}
	r.gate = make([]float64, len(r.tokens))
	return r
}
