package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a schedule that Text, or a user, has written. Blank lines and what follows "#" do not count; a
// rank may have several lines, ranks stand in order; without "place", stage s is on rank s mod the number of
// ranks; "limit" bounds the activations that a rank holds. The error lists every line's fault. Parse knows form only; Verify judges what it has read.
func Parse(text string) (*Schedule, error) {
	p := parser{s: &Schedule{}, seen: make(map[string]bool)}
	for n, line := range strings.Split(text, "\n") {
		p.n = n + 1
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			p.line(fields)
		}
	}
	p.end()
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.s, nil
}

type parser struct {
	faults
	s    *Schedule
	n    int // the line's number, from 1
	seen map[string]bool
}

func (p *parser) bad(format string, args ...any) {
	p.add("schedule text: line %d: %s", p.n, fmt.Sprintf(format, args...))
}

func (p *parser) line(fields []string) {
	word := fields[0]
	if r, ok := strings.CutSuffix(word, ":"); ok {
		p.rank(r, fields[1:])
		return
	}
	switch word {
	case "schedule", "stages", "microbatches", "place", "limit":
		if p.seen[word] {
			p.bad("%s is given twice", word)
			return
		}
		p.seen[word] = true
	default:
		p.bad("%q: a line starts with schedule, stages, microbatches, place, limit, or a rank and a colon", clip(word))
		return
	}
	if word != "place" && len(fields) != 2 {
		p.bad("%s takes one value, has %d", word, len(fields)-1)
		return
	}
	switch word {
	case "schedule":
		p.s.Name = fields[1]
	case "stages":
		p.s.Stages = p.number(word, fields[1], maxRanks*64)
	case "microbatches":
		p.s.Micros = p.number(word, fields[1], maxMicros)
	case "limit":
		p.s.Limit = p.number(word, fields[1], maxOps)
	case "place":
		for _, f := range fields[1:] {
			r, err := strconv.Atoi(f)
			if err != nil || r < 0 {
				p.bad("place: rank %q: must be a number from 0", clip(f))
			}
			p.s.Place = append(p.s.Place, r)
		}
	}
}

func (p *parser) number(word, text string, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.bad("%s %q: must be 1 to %d", word, clip(text), most)
	}
	return n
}

func (p *parser) rank(text string, ops []string) {
	r, err := strconv.Atoi(text)
	switch {
	case err == nil && r == len(p.s.Ranks):
		p.s.Ranks = append(p.s.Ranks, nil)
	case err != nil || r != len(p.s.Ranks)-1:
		p.bad("rank %q: ranks stand in order from 0; next is %d", clip(text), len(p.s.Ranks))
		return
	}
	for _, word := range ops {
		o, err := ParseOp(word)
		if err != nil {
			p.bad("rank %d: %v", r, err)
		}
		p.s.Ranks[r] = append(p.s.Ranks[r], o)
	}
}

// end checks what only the whole text can show, and places the stages if the text has not.
func (p *parser) end() {
	for _, word := range []string{"schedule", "stages", "microbatches"} {
		if !p.seen[word] {
			p.add("schedule text: %s is missing", word)
		}
	}
	if len(p.s.Ranks) == 0 {
		p.add("schedule text: no rank has ops; a rank's line reads as %q", "0: 0F0 0B0 0R U")
		return
	}
	if stages := p.s.Stages; !p.seen["place"] {
		if stages > p.s.count() {
			p.add("schedule text: stages %d: more than there are ops", stages)
			return
		}
		for stage := range max(stages, 0) {
			p.s.Place = append(p.s.Place, stage%len(p.s.Ranks))
		}
	}
}

// ParseOp reads what Op.String writes: "2F0", "2R", "U".
func ParseOp(text string) (Op, error) {
	if text == "U" {
		return Op{Kind: U}, nil
	}
	at := strings.IndexAny(text, "FIWBR")
	if at < 1 {
		return Op{}, badOp(text)
	}
	o := Op{Kind: Kind(strings.IndexByte("FIWBR", text[at]))}
	var err error
	if o.Stage, err = index10(text[:at]); err != nil {
		return Op{}, badOp(text)
	}
	if o.Kind == R {
		if at+1 != len(text) {
			return Op{}, badOp(text)
		}
		return o, nil
	}
	if o.Micro, err = index10(text[at+1:]); err != nil {
		return Op{}, badOp(text)
	}
	return o, nil
}

// index10 reads a number as Op.String writes it: decimal digits, no sign, no leading zero.
func index10(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err == nil && strconv.FormatUint(n, 10) != text {
		err = strconv.ErrSyntax
	}
	return int(n), err
}

func badOp(text string) error {
	return fmt.Errorf("op %q: must be stage, one of F I W B, microbatch (2F0), or stage and R (2R), or U", clip(text))
}

// clip shortens a hostile word for an error.
func clip(word string) string {
	if len(word) > 40 {
		return word[:40] + "..."
	}
	return word
}
