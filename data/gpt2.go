package data

import (
	"fmt"
	"strings"

	"github.com/tiktoken-go/tokenizer/codec"
)

const gpt2Vocab = 50257

// gpt2 is the byte-pair encoding of GPT-2 (Radford et al. 2019, §2.2), with its vocabulary of 50,257 ids.
type gpt2 struct{ codec *codec.Codec }

// newGPT2 unpacks the vocabulary, which takes some ten milliseconds and megabytes once a process. Bytes that are not
// UTF-8 become U+FFFD, as in the original.
func newGPT2() *gpt2 {
	c := codec.NewR50kBase()
	c.SetErrorMode(codec.ErrorModeReplace)
	return &gpt2{c}
}

func (*gpt2) Name() string { return "gpt2" }
func (*gpt2) Vocab() int   { return gpt2Vocab }
func (*gpt2) End() int32   { return gpt2Vocab - 1 }

func (t *gpt2) Encode(ids []int32, text []byte) ([]int32, error) {
	list, _, err := t.codec.Encode(string(text))
	if err != nil {
		return ids, fmt.Errorf("data: gpt2: %w", err)
	}
	for _, id := range list {
		ids = append(ids, int32(id))
	}
	return ids, nil
}

func (t *gpt2) Decode(ids []int32) string {
	var s strings.Builder
	var run []uint // ids between special ones: a character's bytes may lie in several
	flush := func() {
		text, err := t.codec.Decode(run)
		if err != nil {
			text = "\uFFFD"
		}
		s.WriteString(text)
		run = run[:0]
	}
	for _, id := range ids {
		if id >= 0 && id < t.End() {
			run = append(run, uint(id))
			continue
		}
		flush()
		if id == t.End() {
			s.WriteString(EndText)
		} else {
			s.WriteRune('\uFFFD')
		}
	}
	flush()
	return s.String()
}
