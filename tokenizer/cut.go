package tokenizer

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a stretch of text; first is true where it begins the document.
type piece struct {
	text  string
	first bool
}

// cutter is a pre-tokeniser: it cuts pieces into smaller ones, or rewrites them.
type cutter func(pieces []piece) []piece

// gpt2Pattern cuts as GPT-2 does (Radford et al. 2019; the released encoder).
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// spaceSet is Unicode's white space inside a class; Go's \s knows that of ASCII only.
const spaceSet = `\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`

// pattern is a regular expression that runs in linear time. The one look-ahead that tokenizer files use, \s+(?!\S)|\s+ at the end, which leaves
// the last of several spaces to the word behind them, is done by hand: spaces is the number of its group.
type pattern struct {
	re     *regexp.Regexp
	spaces int
}

func compile(text string) (pattern, error) {
	var p pattern
	const look = `\s+(?!\S)|\s+`
	if rest, ok := strings.CutSuffix(text, look); ok {
		text, p.spaces = rest+`(\s+)`, 1
	}
	if len(text) > 4096 {
		return p, fmt.Errorf("a pattern of %d bytes", len(text))
	}
	wide, err := unicodeClasses(text)
	if err != nil {
		return p, fmt.Errorf("pattern %q: %w", text, err)
	}
	if p.re, err = regexp.Compile(wide); err != nil {
		return p, fmt.Errorf("pattern %q: %w", text, err)
	}
	if p.re.NumSubexp() != p.spaces {
		return p, fmt.Errorf("pattern %q: groups that capture are not supported", text)
	}
	return p, nil
}

// wordSet is Unicode's word characters inside a class.
const wordSet = `\p{L}\p{M}\p{N}\p{Pc}`

// unicodeClasses widens \s, \S, \d and \w, which tokenizer files mean for all of Unicode, and refuses what Go would read otherwise: other
// classes of that kind, classes inside classes and their intersections.
func unicodeClasses(text string) (string, error) {
	var s strings.Builder
	inClass := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			wide, err := widen(text[i], inClass)
			if err != nil {
				return "", err
			}
			s.WriteString(wide)
		case c == '[' && inClass, c == '&' && inClass && strings.HasPrefix(text[i:], "&&"):
			return "", errors.New("classes inside classes, and intersections, are not supported")
		case c == '[' || c == ']':
			inClass = c == '['
			s.WriteByte(c)
		default:
			s.WriteByte(c)
		}
	}
	return s.String(), nil
}

// widen is the escape \c.
func widen(c byte, inClass bool) (string, error) {
	set := map[byte]string{'s': spaceSet, 'd': `\p{Nd}`, 'w': wordSet}[c]
	switch {
	case set != "" && inClass:
		return set, nil
	case set != "":
		return "[" + set + "]", nil
	case c == 'S' && !inClass:
		return "[^" + spaceSet + "]", nil
	case strings.IndexByte("SDWbBhHRXK", c) >= 0:
		return "", fmt.Errorf("\\%c here is not supported", c)
	}
	return `\` + string(c), nil
}

// matches yields the borders of all matches, leftmost first.
func (p pattern) matches(text string) (out [][2]int) {
	for at := 0; at < len(text); {
		m := p.re.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		lo, hi := at+m[0], at+m[1]
		if p.spaces > 0 && m[2] >= 0 && hi < len(text) {
			if _, n := utf8.DecodeLastRuneInString(text[lo:hi]); n < hi-lo {
				hi -= n
			}
		}
		if lo == hi { // an empty match cuts nothing
			_, n := utf8.DecodeRuneInString(text[lo:])
			at = lo + n
			continue
		}
		out = append(out, [2]int{lo, hi})
		at = hi
	}
	return out
}

// splitOn cuts by a pattern: matches are pieces, and so is what lies between. removed leaves the matches out; invert takes what lies between for
// the matches.
func splitOn(p pattern, removed, invert bool) cutter {
	return func(pieces []piece) (out []piece) {
		for _, x := range pieces {
			at := 0
			add := func(hi int, match bool) {
				if at < hi && !(removed && match != invert) {
					out = append(out, piece{x.text[at:hi], x.first && at == 0})
				}
				at = hi
			}
			for _, m := range p.matches(x.text) {
				add(m[0], false)
				add(m[1], true)
			}
			add(len(x.text), false)
		}
		return out
	}
}

// byteLevel spells pieces in the characters of bytes, a space before each that has none where asked.
func byteLevel(space bool) cutter {
	return func(pieces []piece) []piece {
		for i, x := range pieces {
			if space && !strings.HasPrefix(x.text, " ") {
				x.text = " " + x.text
			}
			pieces[i].text = spell(x.text)
		}
		return pieces
	}
}

// prefixSpace is the space of byteLevel where a pattern cuts between the two.
func prefixSpace(pieces []piece) []piece {
	for i, x := range pieces {
		if !strings.HasPrefix(x.text, " ") {
			pieces[i].text = " " + x.text
		}
	}
	return pieces
}

// metaspace writes spaces as a mark, puts one before the text (scheme "always": before every piece, "first": the document, "never"), and cuts before
// each mark where asked.
func metaspace(mark, scheme string, cut bool) cutter {
	return func(pieces []piece) (out []piece) {
		for _, x := range pieces {
			x.text = strings.ReplaceAll(x.text, " ", mark)
			if (scheme == "always" || scheme == "first" && x.first) && !strings.HasPrefix(x.text, mark) {
				x.text = mark + x.text
			}
			for cut {
				_, n := utf8.DecodeRuneInString(x.text)
				i := strings.Index(x.text[n:], mark)
				if i < 0 {
					break
				}
				out = append(out, piece{x.text[:n+i], x.first})
				x = piece{text: x.text[n+i:]}
			}
			out = append(out, x)
		}
		return out
	}
}

// digits cuts numbers from the rest, and into digits where asked.
func digits(each bool) cutter {
	return func(pieces []piece) (out []piece) {
		for _, x := range pieces {
			at, was := 0, false
			for i, r := range x.text {
				is := unicode.IsNumber(r)
				if i > at && (is != was || is && each) {
					out = append(out, piece{x.text[at:i], x.first && at == 0})
					at = i
				}
				was = is
			}
			if at < len(x.text) {
				out = append(out, piece{x.text[at:], x.first && at == 0})
			}
		}
		return out
	}
}
