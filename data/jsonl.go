package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// example is one line of a JSONL file in the corpus: tokens lo up to hi, the last one the end-of-text. Tokens from answer on are
// learned; those before it are read only.
type example struct{ lo, answer, hi int }

// inputs is the room an example takes in a sample: every token but the last is an input.
func (e example) inputs() int { return e.hi - e.lo - 1 }

// maxLine bounds a line of a JSONL file.
const maxLine = 16 << 20

// line is what a line may hold: a text that is learned whole, or a prompt that is read and a completion that is learned.
type line struct {
	Text       *string `json:"text"`
	Prompt     *string `json:"prompt"`
	Completion *string `json:"completion"`
}

// lines appends the examples of a JSONL file, up to limit tokens in all. Empty lines are passed over; everything else wrong is said by
// number, up to maxProblems of them.
func (c *Corpus) lines(r io.Reader, limit int) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var wrong []error
	for n := 1; len(c.tokens) < limit && len(wrong) < maxProblems; n++ {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(text) == 0 {
			continue
		}
		if err := c.example(text); err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", n, err))
		}
	}
	return errors.Join(wrong...)
}

// readLine is the next line without its end. A line beyond maxLine is an error, and is not held.
func readLine(in *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(text)+len(part) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		text = append(text, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			return nil, err
		}
		for len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r') {
			text = text[:len(text)-1]
		}
		return text, nil
	}
}

// example appends one line's tokens. Prompt and completion are tokenised apart, so that where the prompt ends does not depend on what follows.
func (c *Corpus) example(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not JSON of an example: %w", err)
	}
	prompt, answer := "", l.Text
	switch {
	case l.Text != nil && (l.Prompt != nil || l.Completion != nil):
		return errors.New(`"text" beside "prompt" or "completion": want one or the others`)
	case l.Text == nil && (l.Prompt == nil || l.Completion == nil):
		return errors.New(`want {"prompt": ..., "completion": ...} or {"text": ...}`)
	case l.Text == nil:
		prompt, answer = *l.Prompt, l.Completion
	}
	e := example{lo: len(c.tokens)}
	var err error
	if c.tokens, err = c.Tokenizer.Encode(c.tokens, []byte(prompt)); err != nil {
		return err
	}
	e.answer = len(c.tokens)
	if c.tokens, err = c.Tokenizer.Encode(c.tokens, []byte(*answer)); err != nil {
		return err
	}
	if len(c.tokens) == e.answer {
		c.tokens = c.tokens[:e.lo]
		return errors.New("nothing to learn: the completion or text is empty")
	}
	c.tokens = append(c.tokens, c.Tokenizer.End())
	e.hi = len(c.tokens)
	c.examples = append(c.examples, e)
	c.Documents++
	c.Bytes += int64(len(prompt) + len(*answer))
	return nil
}

// splitExamples keeps whole examples for evaluation, drawn evenly from all files.
func (c *Corpus) splitExamples(heldOut float64) error {
	n := len(c.examples)
	order := make([]example, n)
	p := NewPermutation(max(1, n), 0)
	for i, e := range c.examples {
		order[p.At(i)] = e
	}
	c.examples, c.trained, c.cut = order, n, len(c.tokens)
	if heldOut == 0 {
		return nil
	}
	for want := float64(len(c.tokens)) * heldOut; c.trained > 0 && float64(len(c.tokens)-c.cut) < want; c.trained-- {
		e := order[c.trained-1]
		c.cut -= e.hi - e.lo
	}
	if c.trained == 0 {
		return Problems{{"data.held_out", fmt.Sprint(heldOut), fmt.Sprintf("of %d examples it leaves none for training", n), "use 0.1, or name more examples"}}
	}
	return nil
}
