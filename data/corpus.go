package data

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"unicode/utf8"
)

// Corpus is all documents as one run of tokens, each document closed by the tokeniser's end-of-text.
// It is read-only once open and shared by all ranks of a process.
type Corpus struct {
	Tokenizer Tokenizer
	Documents int   // taken, the last one perhaps in part
	Found     int   // files found; more than Documents + Binary where MaxTokens cut the rest off
	Binary    int   // files met in directories and left out because they hold NUL bytes
	Bytes     int64 // of text taken

	tokens   []int32
	cut      int       // tokens for training; those of text come first
	examples []example // of JSONL: the first trained ones for training
	trained  int
	config   Config // resolved
}

// Open reads the sources of a section. What is wrong with them comes back as Problems.
func Open(c Config) (*Corpus, error) {
	t, err := NewTokenizer(c.Tokenizer)
	if err != nil {
		return nil, Problems{{"data.tokenizer", fmt.Sprintf("%q", c.Tokenizer), err.Error(), `use "bytes" or "gpt2", or name a tokenizer.json`}}
	}
	c = c.Resolved()
	files, problems := find(c.Source)
	corpus := &Corpus{Tokenizer: t, Found: len(files), config: c}
	limit := c.MaxTokens
	for _, f := range files {
		if len(corpus.tokens) >= limit {
			break
		}
		if err := corpus.read(f, limit); err != nil {
			problems.add("data.source", f.path, err.Error(), "make it readable, or leave it out")
		}
	}
	if len(problems) == 0 && corpus.Bytes == 0 {
		problems.add("data.source", fmt.Sprint(c.Source), fmt.Sprintf("no text in %d files", len(files)), "name files that are not empty")
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return corpus, corpus.split(c.HeldOut)
}

// Of makes a corpus of documents in memory, in their order.
func Of(t Tokenizer, heldOut float64, documents ...string) (*Corpus, error) {
	c := &Corpus{Tokenizer: t, Found: len(documents), config: Config{}.Resolved()}
	for _, d := range documents {
		if err := c.document(bytes.NewReader([]byte(d)), true, DefaultMaxTokens); err != nil {
			return nil, err
		}
	}
	return c, c.split(heldOut)
}

func (c *Corpus) split(heldOut float64) error {
	if c.config.Format == JSONL {
		return c.splitExamples(heldOut)
	}
	held := int(heldOut * float64(len(c.tokens)))
	c.cut = len(c.tokens) - held
	if heldOut > 0 && (held < 2 || c.cut < 2) {
		return Problems{{"data.held_out", fmt.Sprint(heldOut),
			fmt.Sprintf("of %d tokens it keeps %d for evaluation and %d for training; both need 2", len(c.tokens), held, c.cut),
			"use 0.1, or name more text"}}
	}
	return nil
}

func (c *Corpus) read(f file, limit int) error {
	r, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer r.Close()
	if info, err := r.Stat(); err != nil || info.IsDir() {
		return errors.Join(err, errors.New("not a file"))
	}
	if c.config.Format == JSONL {
		return c.lines(r, limit)
	}
	return c.document(r, f.chosen, limit)
}

// chunk is how much text is tokenised at a time. Longer documents are cut at a line's end where there is one.
const chunk = 1 << 20

// document appends one document's tokens and the end-of-text, up to limit tokens in all.
func (c *Corpus) document(r io.Reader, chosen bool, limit int) error {
	buf := make([]byte, 0, chunk)
	for first := true; ; first = false {
		n, err := io.ReadFull(r, buf[len(buf):chunk])
		buf = buf[:len(buf)+n]
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if first && !chosen && bytes.IndexByte(buf[:min(len(buf), 8000)], 0) >= 0 {
			c.Binary++
			return nil
		}
		if first && len(buf) == 0 {
			return nil // an empty file is no document
		}
		end := len(buf)
		if !last {
			end = cutAt(buf)
		}
		if c.tokens, err = c.Tokenizer.Encode(c.tokens, buf[:end]); err != nil {
			return err
		}
		c.Bytes += int64(end)
		buf = buf[:copy(buf, buf[end:])]
		if last || len(c.tokens) >= limit {
			break
		}
	}
	c.tokens = append(c.tokens, c.Tokenizer.End())
	c.tokens = c.tokens[:min(len(c.tokens), limit)]
	c.Documents++
	return nil
}

// cutAt is where a full chunk may be cut: after its last line, or before a character that it holds in part.
func cutAt(buf []byte) int {
	if i := bytes.LastIndexByte(buf, '\n'); i > 0 {
		return i + 1
	}
	for i := len(buf) - 1; i >= len(buf)-utf8.UTFMax; i-- {
		if utf8.RuneStart(buf[i]) {
			return i
		}
	}
	return len(buf)
}

// Tokens is the number of tokens for training and for evaluation.
func (c *Corpus) Tokens() (train, heldOut int) { return c.cut, len(c.tokens) - c.cut }

// Sum identifies the tokens: two corpora with the same sum give the same batches. A resumed run compares it.
func (c *Corpus) Sum() uint64 {
	h := crc64.New(crc64.MakeTable(crc64.ECMA))
	fmt.Fprintf(h, "%s %d %d ", c.Tokenizer.Name(), len(c.tokens), c.cut)
	if c.config.Format == JSONL || c.config.Documents == Apart {
		fmt.Fprintf(h, "%s %s %v %d ", c.config.Documents, c.config.Long, c.examples, c.trained)
	}
	var buf [4]byte
	for _, id := range c.tokens {
		buf = [4]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
		h.Write(buf[:])
	}
	return h.Sum64()
}

// String says what was read, and what was not.
func (c *Corpus) String() string {
	what := "documents"
	if c.config.Format == JSONL {
		what = "examples"
	}
	s := fmt.Sprintf("%d %s, %d bytes, %d tokens (%s), %d of them held out",
		c.Documents, what, c.Bytes, len(c.tokens), c.Tokenizer.Name(), len(c.tokens)-c.cut)
	if rest := c.Found - c.Documents - c.Binary; rest > 0 && c.config.Format == Text {
		s += fmt.Sprintf("; %d files empty or beyond data.max_tokens", rest)
	}
	if c.Binary > 0 {
		s += fmt.Sprintf("; %d binary files left out", c.Binary)
	}
	return s
}
