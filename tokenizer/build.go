package tokenizer

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// step is a normaliser, pre-tokeniser or decoder of a tokenizer.json, with the keys of all kinds.
type step struct {
	Type          string        `json:"type"`
	Steps         []step        `json:"normalizers"`
	Cutters       []step        `json:"pretokenizers"`
	Decoders      []step        `json:"decoders"`
	Pattern       *patternField `json:"pattern"`
	Content       string        `json:"content"`
	Prepend       string        `json:"prepend"`
	Behavior      string        `json:"behavior"`
	Invert        bool          `json:"invert"`
	PrefixSpace   *bool         `json:"add_prefix_space"`
	UseRegex      *bool         `json:"use_regex"`
	Replacement   string        `json:"replacement"`
	PrependScheme string        `json:"prepend_scheme"`
	Split         *bool         `json:"split"`
	Digits        bool          `json:"individual_digits"`
	Start         int           `json:"start"`
	Stop          int           `json:"stop"`
}

// patternField is {"String": ...} or {"Regex": ...}.
type patternField struct{ String, Regex *string }

func (p *patternField) literal() (string, bool) {
	if p == nil || p.String == nil {
		return "", false
	}
	return *p.String, true
}

// build checks a file and makes the tokenizer.
func (f *file) build() (*Tokenizer, error) {
	t := &Tokenizer{end: -1}
	var err error
	if t.bpe, err = f.bpe(); err != nil {
		return nil, err
	}
	if err := t.addTokens(f.Added, f.Normalizer); err != nil {
		return nil, err
	}
	if f.Normalizer != nil {
		if err := t.normaliser(*f.Normalizer); err != nil {
			return nil, fmt.Errorf("normalizer: %w", err)
		}
	}
	if f.PreTokenizer != nil {
		if err := t.preTokeniser(*f.PreTokenizer); err != nil {
			return nil, fmt.Errorf("pre_tokenizer: %w", err)
		}
	}
	if f.Decoder != nil {
		if err := t.decoder(*f.Decoder); err != nil {
			return nil, fmt.Errorf("decoder: %w", err)
		}
	}
	return t, nil
}

// maxID bounds ids, so that a table by id is not larger than the file can say.
const maxID = 1 << 24

func (f *file) bpe() (*bpe, error) {
	m := f.Model
	switch {
	case m.Type != "BPE" && !(m.Type == "" && len(m.Merges) > 0):
		return nil, fmt.Errorf("model.type %q: byte-pair encoding (BPE) is supported", m.Type)
	case m.Prefix != nil && *m.Prefix != "", m.Suffix != nil && *m.Suffix != "":
		return nil, errors.New("model.continuing_subword_prefix, end_of_word_suffix: not supported")
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, errors.New("model.dropout: merges are not dropped at random here")
	}
	b := &bpe{ids: m.Vocab, merges: make(map[[2]int32]merge, len(m.Merges)), unk: -1, fuse: m.FuseUnk, fallback: m.ByteFallback, whole: m.IgnoreMerges}
	if b.ids == nil {
		b.ids = map[string]int32{}
	}
	for s, id := range b.ids {
		if err := b.name(s, id, 2*len(b.ids)+len(f.Added)); err != nil {
			return nil, fmt.Errorf("model.vocab: %w", err)
		}
	}
	for i, p := range m.Merges {
		left, ok1 := b.ids[p[0]]
		right, ok2 := b.ids[p[1]]
		into, ok3 := b.ids[p[0]+p[1]]
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("model.merges[%d]: %q and %q: not in the vocabulary, or not what they make", i, p[0], p[1])
		}
		if _, twice := b.merges[[2]int32{left, right}]; !twice {
			b.merges[[2]int32{left, right}] = merge{int32(i), into}
		}
	}
	if m.Unk != nil && *m.Unk != "" {
		id, ok := b.ids[*m.Unk]
		if !ok {
			return nil, fmt.Errorf("model.unk_token %q: not in the vocabulary", *m.Unk)
		}
		b.unk = id
	}
	if b.fallback {
		for i := range 256 {
			id, ok := b.ids[fmt.Sprintf("<0x%02X>", i)]
			if !ok {
				return nil, fmt.Errorf("model.byte_fallback: the vocabulary has no <0x%02X>", i)
			}
			b.bytes[i] = id
		}
	}
	return b, nil
}

// name enters a token's text. ids may have gaps, but not many more than tokens.
func (b *bpe) name(s string, id int32, most int) error {
	if id < 0 || id >= maxID || int(id) > most+1024 {
		return fmt.Errorf("%q has the id %d among %d tokens", s, id, len(b.ids))
	}
	for int(id) >= len(b.texts) {
		b.texts = append(b.texts, make([]string, int(id)+1-len(b.texts))...)
	}
	b.texts[id] = s
	return nil
}

func (t *Tokenizer) addTokens(list []added, normalizer *step) error {
	rewrites := normalizer != nil && !strings.HasPrefix(normalizer.Type, "NF")
	for _, a := range list {
		if a.Content == "" {
			return fmt.Errorf("added_tokens: id %d has no text", a.ID)
		}
		if err := t.bpe.name(a.Content, a.ID, 2*len(t.bpe.ids)+len(list)); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
		if t.added == nil {
			t.added = map[string]int32{}
		}
		t.added[a.Content] = a.ID
		if a.Special {
			continue
		}
		if a.LStrip || a.RStrip || a.SingleWord || a.Normalized && rewrites {
			return fmt.Errorf("added_tokens: %q: lstrip, rstrip, single_word, and normalized with a normalizer, are not supported", a.Content)
		}
		t.cut = append(t.cut, a.Content)
	}
	return nil
}

func (t *Tokenizer) normaliser(s step) error {
	var f func(string) string
	switch s.Type {
	case "Sequence":
		for _, x := range s.Steps {
			if err := t.normaliser(x); err != nil {
				return err
			}
		}
		return nil
	case "Prepend":
		f = func(x string) string {
			if x == "" {
				return x
			}
			return s.Prepend + x
		}
	case "Replace":
		old, ok := s.Pattern.literal()
		if !ok || old == "" || len(s.Content) > 64 {
			return errors.New("type Replace: want a plain text to replace")
		}
		f = func(x string) string { return strings.ReplaceAll(x, old, s.Content) }
	case "NFC":
		f = norm.NFC.String
	case "NFD":
		f = norm.NFD.String
	case "NFKC":
		f = norm.NFKC.String
	case "NFKD":
		f = norm.NFKD.String
	default:
		return fmt.Errorf("type %q: supported are Sequence, Prepend, Replace, NFC, NFD, NFKC and NFKD", s.Type)
	}
	t.normal = append(t.normal, f)
	return nil
}

func (t *Tokenizer) preTokeniser(s step) error {
	yes := func(p *bool, otherwise bool) bool { return p == nil && otherwise || p != nil && *p }
	switch s.Type {
	case "Sequence":
		for _, x := range s.Cutters {
			if err := t.preTokeniser(x); err != nil {
				return err
			}
		}
	case "ByteLevel":
		space := yes(s.PrefixSpace, false)
		if yes(s.UseRegex, true) {
			p, err := compile(gpt2Pattern)
			if err != nil {
				return err
			}
			if space {
				t.cutters = append(t.cutters, prefixSpace)
			}
			t.cutters, space = append(t.cutters, splitOn(p, false, false)), false
		}
		t.cutters = append(t.cutters, byteLevel(space))
	case "Split":
		if s.Behavior != "Isolated" && s.Behavior != "Removed" {
			return fmt.Errorf("type Split: behavior %q: supported are Isolated and Removed", s.Behavior)
		}
		text, ok := s.Pattern.literal()
		if ok {
			text = regexp.QuoteMeta(text)
		} else if s.Pattern != nil && s.Pattern.Regex != nil {
			text = *s.Pattern.Regex
		}
		if text == "" {
			return errors.New("type Split: no pattern")
		}
		p, err := compile(text)
		if err != nil {
			return fmt.Errorf("type Split: %w", err)
		}
		t.cutters = append(t.cutters, splitOn(p, s.Behavior == "Removed", s.Invert))
	case "Metaspace":
		mark, scheme, err := s.metaspace()
		if err != nil {
			return err
		}
		t.cutters = append(t.cutters, metaspace(mark, scheme, yes(s.Split, true)))
	case "Digits":
		t.cutters = append(t.cutters, digits(s.Digits))
	default:
		return fmt.Errorf("type %q: supported are Sequence, ByteLevel, Split, Metaspace and Digits", s.Type)
	}
	return nil
}

// metaspace is mark and scheme; older files say add_prefix_space.
func (s step) metaspace() (mark, scheme string, err error) {
	mark, scheme = s.Replacement, s.PrependScheme
	if mark == "" {
		mark = "\u2581"
	}
	if scheme == "" {
		scheme = "always"
		if s.PrefixSpace != nil && !*s.PrefixSpace {
			scheme = "never"
		}
	}
	if len(mark) > 8 || scheme != "always" && scheme != "first" && scheme != "never" {
		return "", "", fmt.Errorf("type Metaspace: replacement %q, prepend_scheme %q", mark, scheme)
	}
	return mark, scheme, nil
}

func (t *Tokenizer) decoder(s step) error {
	var f undoer
	switch s.Type {
	case "Sequence":
		for _, x := range s.Decoders {
			if err := t.decoder(x); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		f = undoBytes
	case "ByteFallback":
		f = undoFallback
	case "Fuse":
		f = fuse
	case "Replace":
		old, ok := s.Pattern.literal()
		if !ok || old == "" || len(s.Content) > 64 {
			return errors.New("type Replace: want a plain text to replace")
		}
		f = undoReplace(old, s.Content)
	case "Strip":
		f = undoStrip(s.Content, s.Start, s.Stop)
	case "Metaspace":
		mark, scheme, err := s.metaspace()
		if err != nil {
			return err
		}
		f = undoMetaspace(mark, scheme != "never")
	default:
		return fmt.Errorf("type %q: supported are Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip and Metaspace", s.Type)
	}
	t.undo = append(t.undo, f)
	return nil
}
