package schedule

// ZBV is the zero-bubble schedule on two chunks a rank, placed there and back, in the memory of 1F1B: 2p
// activations of a chunk (Qi et al. 2024, §4; "ZB-V").
func ZBV(p, m int) *Schedule { return vees("zb-v", p, m, 2*p) }

// VHalf holds half of that and two more: p+2 (same paper, "V-Half").
func VHalf(p, m int) *Schedule { return vees("v-half", p, m, p+2) }

// VMin holds a third of it and some: (2p+8)/3, rounded up (same paper, "V-Min"). It is the schedule that suffers
// most where F, I and W are not equal.
func VMin(p, m int) *Schedule { return vees("v-min", p, m, (2*p+8+2)/3) }
