package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// undoer is a step of a decoder: it rewrites a list of token texts.
type undoer func(tokens []string) []string

// undoBytes joins tokens spelled byte by byte.
func undoBytes(tokens []string) []string {
	var s strings.Builder
	for _, t := range tokens {
		unspell(&s, t)
	}
	return []string{strings.ToValidUTF8(s.String(), "\uFFFD")}
}

// undoFallback turns runs of <0xE2> into the characters that their bytes spell; where they spell none, each into U+FFFD.
func undoFallback(tokens []string) (out []string) {
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			for range run {
				out = append(out, "\uFFFD")
			}
		}
		run = run[:0]
	}
	for _, t := range tokens {
		if b, ok := fallbackByte(t); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, t)
	}
	flush()
	return out
}

// fallbackByte is the byte of "<0xE2>".
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

func undoReplace(old, by string) undoer {
	return func(tokens []string) []string {
		for i, t := range tokens {
			tokens[i] = strings.ReplaceAll(t, old, by)
		}
		return tokens
	}
}

func fuse(tokens []string) []string { return []string{strings.Join(tokens, "")} }

// undoStrip takes up to start and stop characters off the ends of each token.
func undoStrip(char string, start, stop int) undoer {
	return func(tokens []string) []string {
		for i, t := range tokens {
			for n := 0; n < start && char != "" && strings.HasPrefix(t, char); n++ {
				t = t[len(char):]
			}
			for n := 0; n < stop && char != "" && strings.HasSuffix(t, char); n++ {
				t = t[:len(t)-len(char)]
			}
			tokens[i] = t
		}
		return tokens
	}
}

// undoMetaspace turns marks into spaces, and drops the one before the text.
func undoMetaspace(mark string, prepended bool) undoer {
	return func(tokens []string) []string {
		for i, t := range tokens {
			if i == 0 && prepended {
				t = strings.TrimPrefix(t, mark)
			}
			tokens[i] = strings.ReplaceAll(t, mark, " ")
		}
		return tokens
	}
}
