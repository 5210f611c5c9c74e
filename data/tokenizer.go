package data

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"triax/tokenizer"
)

// Tokenizer turns text into token ids and back. It may be used by several goroutines.
type Tokenizer interface {
	Name() string
	// Vocab is the number of ids; all ids are below it.
	Vocab() int
	// End is the id that closes every document. Encode never makes it.
	End() int32
	// Encode appends the ids of a text.
	Encode(ids []int32, text []byte) ([]int32, error)
	// Decode is the text of ids; End prints as EndText, an id outside the vocabulary as U+FFFD.
	Decode(ids []int32) string
}

// Begin is what stands before a text: the tokens that the model was trained with there, or else the end of a text before it.
func Begin(t Tokenizer) []int32 {
	if b, ok := t.(interface{ Begin() []int32 }); ok {
		if ids := b.Begin(); len(ids) > 0 {
			return ids
		}
	}
	return []int32{t.End()}
}

// EndText is how the end-of-text token prints.
const EndText = "<|endoftext|>"

// NewTokenizer makes a tokeniser by its name in configurations, or reads the one of a published model: a tokenizer.json, or a folder with
// one or with vocab.json and merges.txt.
func NewTokenizer(name string) (Tokenizer, error) {
	switch name {
	case "bytes":
		return Bytes{}, nil
	case "gpt2":
		return newGPT2(), nil
	}
	if !IsFile(name) {
		return nil, fmt.Errorf("want one of %v, or a tokenizer.json", Tokenizers)
	}
	return load(name)
}

// IsFile says whether a tokeniser's name is a path.
func IsFile(name string) bool { return strings.ContainsAny(name, "/.\\") }

// loaded keeps what was read, by path and state of the file: large ones take a second.
var loaded sync.Map

func load(path string) (Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(path, info.Size(), info.ModTime())
	if t, ok := loaded.Load(key); ok {
		return t.(*tokenizer.Tokenizer), nil
	}
	t, err := tokenizer.Load(path)
	if err != nil {
		return nil, err
	}
	loaded.Store(key, t)
	return t, nil
}

// VocabOf is the number of ids of a tokeniser, end-of-text included; 0 for an unknown one.
func VocabOf(name string) int {
	switch name {
	case "bytes":
		return Bytes{}.Vocab()
	case "gpt2":
		return gpt2Vocab
	}
	if IsFile(name) {
		if t, err := load(name); err == nil {
			return t.Vocab()
		}
	}
	return 0
}

// Bytes has an id for each byte, 0 to 255, and 256 for end of text. Any file is text to it.
type Bytes struct{}

func (Bytes) Name() string { return "bytes" }
func (Bytes) Vocab() int   { return 257 }
func (Bytes) End() int32   { return 256 }

func (Bytes) Encode(ids []int32, text []byte) ([]int32, error) {
	for _, b := range text {
		ids = append(ids, int32(b))
	}
	return ids, nil
}

func (t Bytes) Decode(ids []int32) string {
	var s strings.Builder
	for _, id := range ids {
		switch {
		case id >= 0 && id < 256:
			s.WriteByte(byte(id))
		case id == t.End():
			s.WriteString(EndText)
		default:
			s.WriteRune('\uFFFD')
		}
	}
	return s.String()
}
