package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"triax/checkpoint/safetensors"
	"triax/nn"
)

// Checkpoint is an open one. It may be used by several goroutines.
type Checkpoint struct {
	Meta
	Dir     string
	Entries []Entry

	files map[string]*safetensors.File
	at    map[[2]string][]Entry // by kind and parameter
}

// Open reads the index and maps the files; every stretch must be in its file, in its size and type. Checksums are left to Verify.
func Open(dir string) (*Checkpoint, error) {
	x, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Meta: x.Meta, Dir: dir, Entries: x.Entries, files: map[string]*safetensors.File{}, at: map[[2]string][]Entry{}}
	for _, e := range x.Entries {
		f := c.files[e.File]
		if f == nil {
			if f, err = safetensors.Open(filepath.Join(dir, e.File)); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			c.files[e.File] = f
		}
		a, ok := f.Arrays[e.Array]
		if !ok || a.DType != e.DType || a.Elements() != e.Len() {
			return nil, errors.Join(fmt.Errorf("%s: array %q is not what the index says", f.Path, e.Array), c.Close())
		}
		key := [2]string{e.Kind, e.Name}
		c.at[key] = append(c.at[key], e)
	}
	return c, nil
}

// Close unmaps the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func (c *Checkpoint) raw(e Entry) []byte {
	f := c.files[e.File]
	return f.Bytes(f.Arrays[e.Array])
}

// Verify reads everything and compares checksums, on all cores.
func (c *Checkpoint) Verify(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range c.Entries {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.files[e.File].Try(func() error {
				if crc32.Checksum(c.raw(e), castagnoli) != e.CRC {
					return fmt.Errorf("%s: %s of %s has changed since it was written: its checksum does not fit", c.files[e.File].Path, e.Kind, e.Name)
				}
				return nil
			})
		})
	}
	return g.Wait()
}

// Source gives the weights, or one of the optimizer's states, by logical element.
func (c *Checkpoint) Source(kind string) nn.Source { return source{c, kind} }

// StateSource gives an optimizer state; a state that the checkpoint does not have is an error.
func (c *Checkpoint) StateSource(name string) (nn.Source, error) {
	if !slices.Contains(c.States, name) {
		return nil, fmt.Errorf("%s: has the optimizer states %v and not %q; use the run's optim.rule", c.Dir, c.States, name)
	}
	return source{c, name}, nil
}

type source struct {
	c    *Checkpoint
	kind string
}

// Values finds the elements in the stretches that have them. A parameter of another shape is an error, and so is an element that nobody wrote.
func (s source) Values(dst []float64, p *nn.Param, first int) error {
	list := s.c.at[[2]string{s.kind, p.Name}]
	if len(list) == 0 {
		return fmt.Errorf("%s has no %s of %s: it is of another model", s.c.Dir, s.kind, p.Name)
	}
	if !slices.Equal(list[0].Shape, p.Shape) {
		return fmt.Errorf("%s has %s with shape %v, the model wants %v", s.c.Dir, p.Name, list[0].Shape, p.Shape)
	}
	found := 0
	for _, e := range list {
		raw, size := s.c.raw(e), e.DType.Size()
		err := s.c.files[e.File].Try(func() error {
			e.overlap(first, len(dst), func(from, to, n int) {
				e.DType.Values(dst[to:to+n], raw[from*size:(from+n)*size])
				found += n
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	if found != len(dst) {
		return fmt.Errorf("%s: %d of the elements %d to %d of %s of %s are in its files", s.c.Dir, found, first, first+len(dst), s.kind, p.Name)
	}
	return nil
}

// Names lists the parameters in order of their names.
func (c *Checkpoint) Names() []string {
	var names []string
	for key := range c.at {
		if key[0] == Weight {
			names = append(names, key[1])
		}
	}
	slices.Sort(names)
	return names
}

// Shape is a parameter's; nil for one that the checkpoint does not have.
func (c *Checkpoint) Shape(name string) []int {
	if list := c.at[[2]string{Weight, name}]; len(list) > 0 {
		return list[0].Shape
	}
	return nil
}

// Resume is everything that a run goes on from: weights, and states by name.
func (c *Checkpoint) Resume() nn.StateSource { return resume{source{c, Weight}} }

type resume struct{ source }

func (r resume) StateSource(name string) (nn.Source, error) { return r.c.StateSource(name) }
