package data

import "fmt"

// Set is the windows of one part of a corpus, and the batches they form. Window i holds tokens iS up to iS+S
// as inputs and the same one further as targets, so every target of the part occurs once an epoch; the last
// window may be short, and is filled up with masked targets.
type Set struct {
	tokens  []int32
	end     int32
	windows int
	seq     int // S
	batch   int // samples a step, over all ranks
	seed    uint64
	last    string // Pad, Drop or Wrap
	shuffle bool
	joined  bool        // documents in a sample see one another
	packs   [][]example // of whole examples, instead of windows; nil for text
}

// Train is the part for training: S tokens a sample, batch samples a step over all ranks, shuffled anew each epoch by the
// seed. replicas is the number of ranks that see different samples; each must get one.
func (c *Corpus) Train(seq, batch, replicas int, seed uint64, last string) (*Set, error) {
	s := &Set{tokens: c.tokens, end: c.Tokenizer.End(), seq: seq, batch: batch, seed: seed, last: last, shuffle: true}
	if err := s.of(c, c.examples[:c.trained], c.tokens[:c.cut]); err != nil {
		return nil, err
	}
	return s, s.open(replicas)
}

// of fills a set with packs of examples, or windows of tokens.
func (s *Set) of(c *Corpus, list []example, tokens []int32) error {
	s.joined = c.config.Documents == Joined
	if c.config.Format != JSONL {
		s.tokens = tokens
		return nil
	}
	list, err := fit(list, s.seq, c.config.Long)
	if err == nil && len(list) == 0 {
		err = Problems{{"data.source", fmt.Sprint(c.config.Source), "no example is left", "name more, or shorter ones"}}
	}
	s.packs = pack(list, s.seq)
	return err
}

// HeldOut is the part for evaluation: in order, the last batch padded. It is nil where nothing is held out.
func (c *Corpus) HeldOut(seq, batch int) (*Set, error) {
	if c.cut == len(c.tokens) {
		return nil, nil
	}
	s := &Set{end: c.Tokenizer.End(), tokens: c.tokens, seq: seq, batch: batch, last: Pad}
	if err := s.of(c, c.examples[c.trained:], c.tokens[c.cut:]); err != nil {
		return nil, err
	}
	return s, s.open(1)
}

// All is everything, in order, the last batch padded.
func (c *Corpus) All(seq, batch int) (*Set, error) {
	s := &Set{end: c.Tokenizer.End(), tokens: c.tokens, seq: seq, batch: batch, last: Pad}
	if err := s.of(c, c.examples, c.tokens); err != nil {
		return nil, err
	}
	return s, s.open(1)
}

func (s *Set) open(replicas int) error {
	if s.seq < 1 || s.batch < 1 {
		panic(fmt.Sprintf("data: sequence %d, batch %d", s.seq, s.batch))
	}
	if s.packs != nil {
		s.windows = len(s.packs)
	} else {
		s.windows = (len(s.tokens) - 1 + s.seq - 1) / s.seq
	}
	var problems Problems
	if s.windows < 1 {
		problems.add("data.source", fmt.Sprintf("%d tokens", len(s.tokens)), "a sample needs 2 tokens", "name more text")
	} else if s.windows < replicas {
		problems.add("data.source", fmt.Sprintf("%d samples of %d tokens", s.windows, s.seq),
			fmt.Sprintf("fewer than the %d data-parallel ranks", replicas), "name more text, shorten model.sequence or lower mesh.dp")
	} else if s.last == Drop && s.windows < s.batch {
		problems.add("data.last_batch", s.last, fmt.Sprintf("an epoch has %d samples, fewer than one batch of %d", s.windows, s.batch),
			`use "pad" or "wrap", or lower train.batch`)
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// Samples is the number of samples of an epoch.
func (s *Set) Samples() int { return s.windows }

// Steps is the number of batches of an epoch. Under Wrap epochs do not end with a batch, and the
// number is rounded up.
func (s *Set) Steps() int {
	if s.last == Drop {
		return s.windows / s.batch
	}
	return (s.windows + s.batch - 1) / s.batch
}

// window tells which window sample i of a step is, counted from 0 both, and in which epoch; -1 is padding.
func (s *Set) window(step, i int) (window, epoch int) {
	var at int // in the epoch
	if s.last == Wrap {
		n := step*s.batch + i
		epoch, at = n/s.windows, n%s.windows
	} else {
		epoch = step / s.Steps()
		at = step%s.Steps()*s.batch + i
		if at >= s.windows {
			return -1, epoch
		}
	}
	if !s.shuffle {
		return at, epoch
	}
	return NewPermutation(s.windows, mix(s.seed+mix(uint64(epoch)))).At(at), epoch
}

// String says how large the set is.
func (s *Set) String() string {
	return fmt.Sprintf("%d samples of %d tokens, %d steps an epoch", s.windows, s.seq, s.Steps())
}
