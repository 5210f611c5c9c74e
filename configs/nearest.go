package configs

import "strings"

// nearest is the known name that differs from name in the fewest letters, and of those the one that begins most alike. A key typed under the wrong section is
// found by its own part.
func nearest(name string, known []string) string {
	const longest = 64 // names beyond it are no typing errors of ours
	if len(name) > longest {
		name = name[:longest]
	}
	best, least := "", -1
	for _, k := range known {
		d := distance(name, k)
		if _, key, ok := strings.Cut(k, "."); ok {
			_, own, _ := strings.Cut(name, ".")
			if own == key {
				d = min(d, 1)
			}
			if !strings.Contains(name, ".") {
				d = min(d, distance(name, key)+1)
			}
		}
		if least < 0 || d < least || d == least && prefix(name, k) > prefix(name, best) {
			best, least = k, d
		}
	}
	return best
}

// distance is the least number of insertions, deletions and replacements of bytes between two names
// (Levenshtein 1966), by the usual table with one row kept.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// prefix is the length of what two names begin with.
func prefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
