package tokenizer

import (
	"fmt"
	"strings"
	"sync"
)

// Tokenizer is one model's. Its methods may be called by several goroutines.
type Tokenizer struct {
	path    string
	bpe     *bpe
	added   map[string]int32
	cut     []string // added tokens that a text may hold
	normal  []func(string) string
	cutters []cutter
	undo    []undoer
	end     int32 // -1 while unknown
	begin   []int32

	seen sync.Map // piece → []int32
	size sync.Mutex
	held int // bytes of pieces in seen
}

// Name is the path that it was read from.
func (t *Tokenizer) Name() string { return t.path }

// Vocab is the number of ids, gaps counted.
func (t *Tokenizer) Vocab() int { return len(t.bpe.texts) }

// End is the id of the end-of-text token.
func (t *Tokenizer) End() int32 { return t.end }

// Begin is the token that a model expects before a text; none where the files name none.
func (t *Tokenizer) Begin() []int32 { return t.begin }

// ID is the id of a token's text as the vocabulary writes it.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added[token]; ok {
		return id, true
	}
	id, ok := t.bpe.ids[token]
	return id, ok
}

// Encode appends the ids of a text. Bytes that are not UTF-8 become U+FFFD.
func (t *Tokenizer) Encode(ids []int32, text []byte) ([]int32, error) {
	rest := strings.ToValidUTF8(string(text), "\uFFFD")
	for first := true; rest != ""; first = false {
		at, token := t.nextAdded(rest)
		var err error
		if ids, err = t.encode(ids, rest[:at], first); err != nil {
			return ids, err
		}
		if token == "" {
			break
		}
		ids = append(ids, t.added[token])
		rest = rest[at+len(token):]
	}
	return ids, nil
}

// nextAdded is where the leftmost added token of a text begins, the longest of those that begin there; the text's end where there is none.
func (t *Tokenizer) nextAdded(text string) (at int, token string) {
	at = len(text)
	for _, a := range t.cut {
		if i := strings.Index(text[:min(len(text), at+len(a))], a); i >= 0 && (i < at || len(a) > len(token)) {
			at, token = i, a
		}
	}
	return at, token
}

// encode appends the ids of text between added tokens.
func (t *Tokenizer) encode(ids []int32, text string, first bool) ([]int32, error) {
	if text == "" {
		return ids, nil
	}
	for _, f := range t.normal {
		text = f(text)
	}
	pieces := []piece{{text, first}}
	for _, c := range t.cutters {
		pieces = c(pieces)
	}
	for _, p := range pieces {
		var err error
		if ids, err = t.piece(ids, p.text); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// Pieces come again and again: short ones are kept, up to so many bytes of them.
const (
	shortPiece = 64
	maxHeld    = 16 << 20
)

func (t *Tokenizer) piece(ids []int32, text string) ([]int32, error) {
	if len(text) > shortPiece {
		return t.bpe.encode(ids, text)
	}
	if list, ok := t.seen.Load(text); ok {
		return append(ids, list.([]int32)...), nil
	}
	list, err := t.bpe.encode(nil, text)
	if err != nil {
		return ids, err
	}
	t.size.Lock()
	if t.held += len(text) + 4*len(list) + 64; t.held < maxHeld {
		t.seen.Store(strings.Clone(text), list)
	}
	t.size.Unlock()
	return append(ids, list...), nil
}

// Decode is the text of ids; an id that stands for nothing prints as U+FFFD.
func (t *Tokenizer) Decode(ids []int32) string {
	tokens := make([]string, len(ids))
	for i, id := range ids {
		tokens[i] = "\uFFFD"
		if id >= 0 && int(id) < len(t.bpe.texts) && t.bpe.texts[id] != "" {
			tokens[i] = t.bpe.texts[id]
		}
	}
	for _, f := range t.undo {
		tokens = f(tokens)
	}
	return strings.Join(tokens, "")
}

// String says what it is.
func (t *Tokenizer) String() string {
	return fmt.Sprintf("%s: %d tokens, %d merges", t.path, t.Vocab(), len(t.bpe.merges))
}
