package data

import "fmt"

// Masked is the target of a token that carries no loss.
const Masked = -1

// Sample is one row of a batch. Its slices are read-only views of the corpus where it is whole.
type Sample struct {
	Index   int     // in the global batch
	Window  int     // in the set; -1 is padding
	Epoch   int     // from 0
	Tokens  []int32 // [S]
	Targets []int32 // [S], Masked where there is none
	Starts  []int   // where documents begin, the first at 0, where they are kept apart; nil where the sample is one
	Valid   int     // targets that are not masked
}

// Batch is the global batch of a step: what all ranks together train on.
type Batch struct {
	Step    int // from 1
	Samples []Sample
	Valid   int // valid tokens over all samples: what the loss is divided by, known to every rank without asking
}

// Global is the batch of a step, counted from 1: a pure function of the set, its seed and the step.
func (s *Set) Global(step int) Batch {
	if step < 1 {
		panic(fmt.Sprintf("data: batch of step %d; steps count from 1", step))
	}
	b := Batch{Step: step, Samples: make([]Sample, s.batch)}
	for i := range b.Samples {
		x := s.sample(s.window(step-1, i))
		x.Index = i
		b.Samples[i] = x
		b.Valid += x.Valid
	}
	return b
}

func (s *Set) sample(window, epoch int) Sample {
	if s.packs != nil {
		return s.packed(window, epoch)
	}
	x := s.stretch(window, epoch)
	if !s.joined {
		s.borders(&x)
	}
	return x
}

// stretch is a window of the corpus.
func (s *Set) stretch(window, epoch int) Sample {
	x := Sample{Window: window, Epoch: epoch}
	if window >= 0 {
		x.Valid = min(s.seq, len(s.tokens)-1-window*s.seq)
	}
	if x.Valid == s.seq {
		at := window * s.seq
		x.Tokens, x.Targets = s.tokens[at:at+s.seq:at+s.seq], s.tokens[at+1:at+1+s.seq:at+1+s.seq]
		return x
	}
	x.Tokens, x.Targets = make([]int32, s.seq), make([]int32, s.seq)
	for i := range s.seq {
		if i < x.Valid {
			x.Tokens[i], x.Targets[i] = s.tokens[window*s.seq+i], s.tokens[window*s.seq+i+1]
		} else {
			x.Tokens[i], x.Targets[i] = s.end, Masked
		}
	}
	return x
}

// Micro is microbatch micro of micros on data rank dpRank of dp. A rank's microbatches are consecutive samples,
// and ranks follow one another, so every rank has the same number of microbatches and of samples in each, padding
// included. The tensor and pipeline coordinates do not enter: those peers get the same samples.
func (b Batch) Micro(dpRank, dp, micro, micros int) []Sample {
	if dpRank < 0 || dpRank >= dp || micro < 0 || micro >= micros || len(b.Samples)%(dp*micros) != 0 {
		panic(fmt.Sprintf("data: microbatch %d of %d on data rank %d of %d in a batch of %d", micro, micros, dpRank, dp, len(b.Samples)))
	}
	n := len(b.Samples) / (dp * micros)
	at := (dpRank*micros + micro) * n
	return b.Samples[at : at+n]
}
