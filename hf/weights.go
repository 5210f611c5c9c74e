package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"triax/checkpoint/safetensors"
	"triax/nn"
)

// Weights is an open folder: its files are mapped, and parts are read when they are asked for. It is an nn.Source, and may be used by
// several goroutines.
type Weights struct {
	Dir    string
	Config Config
	Model  nn.Config // unresolved; Sequence is the longest that the model is for
	Fresh  nn.Source // of parameters that no folder has: adapters

	layout layout
	files  []*safetensors.File
	arrays map[string]array
	read   atomic.Int64 // bytes since pages were given back
}

// array is a tensor of the folder.
type array struct {
	safetensors.Array
	file *safetensors.File
}

func (a array) bytes() []byte { return a.file.Bytes(a.Array) }

// Open maps a folder and checks it: the model is one that this room can compute with exactly, and every parameter has its tensor, of the right
// shape and a floating type, and no tensor is left over. What is wrong is said by name.
func Open(dir string) (*Weights, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	w := &Weights{Dir: dir, Config: c, layout: layoutOf(c.ModelType), arrays: map[string]array{}}
	if w.Model, err = c.Shape(); err == nil {
		err = errors.Join(c.Supported(), sane(w.Model))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	err = w.open()
	if err == nil {
		err = w.Fits(w.Model)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), w.Close())
	}
	return w, nil
}

// sane bounds the sizes that a config.json may claim, far above any model, so that products do not overflow.
func sane(m nn.Config) error {
	for _, n := range []int{m.Layers, m.Width, m.Heads, m.KVHeads, m.HeadDim, m.Hidden, m.Vocab, m.Positions} {
		if n < 0 || n > 1<<24 {
			return fmt.Errorf("a size of %d", n)
		}
	}
	return m.Resolved().Validate()
}

// Close unmaps the files. Weights must not be used afterwards.
func (w *Weights) Close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	w.files = nil
	return errors.Join(errs...)
}

const (
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// open maps the one file, or those of the index.
func (w *Weights) open() error {
	index := map[string]string{}
	names := []string{singleFile}
	if text, err := readBounded(filepath.Join(w.Dir, indexFile)); err == nil {
		if index, names, err = parseIndex(text); err != nil {
			return fmt.Errorf("%s: %w", indexFile, err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range names {
		f, err := safetensors.Open(filepath.Join(w.Dir, name))
		if errors.Is(err, os.ErrNotExist) && len(index) == 0 {
			return errors.New("no model.safetensors and no index of several; pickled weights (.bin, .pth) are not read: save the model with safetensors")
		}
		if err != nil {
			return err
		}
		w.files = append(w.files, f)
		for tensor, a := range f.Arrays {
			if _, twice := w.arrays[w.full(tensor)]; twice {
				return fmt.Errorf("tensor %q is in two files", tensor)
			}
			w.arrays[w.full(tensor)] = array{a, f}
		}
	}
	for tensor, name := range index {
		if a, ok := w.arrays[w.full(tensor)]; !ok || filepath.Base(a.file.Path) != name {
			return fmt.Errorf("%s: tensor %q is not in %s", indexFile, tensor, name)
		}
	}
	return nil
}

// parseIndex reads an index: which file has which tensor. Files are named without folders.
func parseIndex(text []byte) (index map[string]string, files []string, err error) {
	var doc struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, nil, err
	}
	if len(doc.Map) == 0 {
		return nil, nil, errors.New("weight_map is empty")
	}
	for tensor, name := range doc.Map {
		if name != filepath.Base(name) || !strings.HasSuffix(name, ".safetensors") {
			return nil, nil, fmt.Errorf("tensor %q: %q is not the name of a safetensors file in this folder", tensor, name)
		}
		if !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	sort.Strings(files)
	return doc.Map, files, nil
}

// full is a tensor's name with the prefix that the first files of GPT-2 leave out.
func (w *Weights) full(name string) string {
	if _, old := w.layout.(gpt2); old && name != "lm_head.weight" && !strings.HasPrefix(name, "transformer.") {
		return "transformer." + name
	}
	return name
}

// Fits says by name what keeps a model from starting from these weights: m is Model with other choices of how to train it.
func (w *Weights) Fits(m nn.Config) error {
	m = m.Resolved()
	if n := w.Config.window(); n > 0 && m.Sequence > n {
		return fmt.Errorf("model.sequence = %d: the model attends over a sliding window of %d tokens, which is not supported; use %d", m.Sequence, n, n)
	}
	if m.Layers > len(w.arrays) { // what is built to compare is not larger than what was read
		return fmt.Errorf("num_hidden_layers = %d: the files have %d tensors", m.Layers, len(w.arrays))
	}
	layers, err := nn.Whole(m)
	if err != nil {
		return err
	}
	var errs []error
	used := map[string]bool{}
	for _, l := range layers {
		for _, p := range l.Params() {
			if p.Adapter {
				continue
			}
			at, ok := w.layout.place(m, p)
			if !ok {
				return fmt.Errorf("%s: %s has no such parameter", p.Name, w.Config.ModelType)
			}
			a, ok := w.arrays[at.tensor]
			switch {
			case !ok && !used[at.tensor]:
				errs = append(errs, fmt.Errorf("tensor %q is missing (%s)", at.tensor, p.Name))
			case ok && !slices.Equal(a.Shape, at.shape):
				errs = append(errs, fmt.Errorf("tensor %q is %v, want %v (%s)", at.tensor, a.Shape, at.shape, p.Name))
			case ok && !a.DType.Float():
				errs = append(errs, fmt.Errorf("tensor %q is of type %s; want F64, F32, F16 or BF16", at.tensor, a.DType))
			}
			used[at.tensor] = true
		}
	}
	for _, name := range sorted(w.arrays) {
		if used[name] || w.layout.ignored(name) {
			continue
		}
		if err := w.leftOver(name, m); err != nil {
			errs = append(errs, err)
		}
	}
	return firstOf(errs)
}

// leftOver allows the second copy of a tied table, when it is one.
func (w *Weights) leftOver(name string, m nn.Config) error {
	if name != "lm_head.weight" || !m.Tied {
		return fmt.Errorf("tensor %q belongs to no parameter of a %s", name, w.Config.ModelType)
	}
	for _, table := range []string{"model.embed_tokens.weight", "transformer.wte.weight"} {
		if a, ok := w.arrays[table]; ok && a.DType == w.arrays[name].DType && bytes.Equal(a.bytes(), w.arrays[name].bytes()) {
			return nil
		}
	}
	return errors.New("tie_word_embeddings = true, but lm_head.weight is not the embedding")
}

// firstOf joins the first few of many errors.
func firstOf(errs []error) error {
	if n := len(errs); n > 8 {
		errs = append(errs[:8:8], fmt.Errorf("and %d more", n-8))
	}
	return errors.Join(errs...)
}

func sorted[T any](m map[string]T) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Values reads elements of a parameter from the mapped files. Adapters are not in the folder: they start from their own values.
func (w *Weights) Values(dst []float64, p *nn.Param, first int) error {
	if p.Adapter && w.Fresh != nil {
		return w.Fresh.Values(dst, p, first)
	}
	at, ok := w.layout.place(w.Model.Resolved(), p)
	a, found := w.arrays[at.tensor]
	if !ok || !found {
		return fmt.Errorf("%s has no tensor for it", w.Dir)
	}
	at.read(dst, a, p, first)
	return w.tidy(len(dst) * a.DType.Size())
}

// tidyBytes is how much is read before pages are given back.
const tidyBytes = 64 << 20

// tidy keeps the pages of the files from adding up in the process's memory beside the parameters.
func (w *Weights) tidy(read int) error {
	if w.read.Add(int64(read)) < tidyBytes {
		return nil
	}
	w.read.Store(0)
	for _, f := range w.files {
		if err := f.Forget(); err != nil {
			return err
		}
	}
	return nil
}

// straight says whether the elements stand in one run, in the parameter's order.
func (at place) straight(p *nn.Param) bool {
	return at.col == 1 && (len(p.Shape) == 1 || at.row == p.Shape[1])
}

// read decodes logical elements first, first+1, ... of a parameter.
func (at place) read(dst []float64, a array, p *nn.Param, first int) {
	size, raw := a.DType.Size(), a.bytes()
	cols := p.Shape[len(p.Shape)-1]
	if at.straight(p) {
		lo := (at.base + first) * size
		a.DType.Values(dst, raw[lo:lo+len(dst)*size])
		return
	}
	var buf [1024 * 8]byte
	for done := 0; done < len(dst); {
		n := min(len(dst)-done, 1024)
		r, c := (first+done)/cols, (first+done)%cols
		for i := range n {
			from := (at.base + r*at.row + c*at.col) * size
			for b := range size {
				buf[i*size+b] = raw[from+b]
			}
			if c++; c == cols {
				r, c = r+1, 0
			}
		}
		a.DType.Values(dst[done:done+n], buf[:n*size])
		done += n
	}
}

// Tensor names the tensor that holds a parameter; "" for none.
func (w *Weights) Tensor(p *nn.Param) string {
	at, _ := w.layout.place(w.Model.Resolved(), p)
	return at.tensor
}

// Gather takes a parameter's elements, in its own order, out of the values of its tensor.
func (w *Weights) Gather(p *nn.Param, values []float64) []float64 {
	at, _ := w.layout.place(w.Model.Resolved(), p)
	out, cols := make([]float64, p.Elements()), p.Shape[len(p.Shape)-1]
	for i := range out {
		out[i] = values[at.base+i/cols*at.row+i%cols*at.col]
	}
	return out
}
