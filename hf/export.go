package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"

	"triax/checkpoint/safetensors"
	"triax/nn"
)

// DTypes are the types that weights can be exported in, by their names in configurations.
var DTypes = map[string]safetensors.DType{"float32": safetensors.F32, "bfloat16": safetensors.BF16, "float16": safetensors.F16,
	"fp32": safetensors.F32, "bf16": safetensors.BF16, "fp16": safetensors.F16}

// torchNames are transformers' names of the types.
var torchNames = map[safetensors.DType]string{safetensors.F32: "float32", safetensors.BF16: "bfloat16", safetensors.F16: "float16"}

// Export says how a model is written.
type Export struct {
	Model nn.Config
	From  nn.Source // the weights, by logical element
	DType safetensors.DType
	// Like is a folder whose model_type, other keys of config.json, and tokenizer files are taken over: the one the model was imported
	// from. "" makes a config.json of the model alone.
	Like string
	// EOS is the end-of-text token where Like does not say; negative for none.
	EOS int
	// ShardBytes bounds a file of weights; 0 means 5 GB. A tensor is never cut.
	ShardBytes int64
}

const defaultShard = 5e9

// Write makes a folder that transformers loads. It is written beside dir and renamed when it has been read back; dir must not exist, or be
// empty.
func (e Export) Write(dir string) error {
	config, kind, err := e.config()
	if err != nil {
		return err
	}
	tensors, err := e.tensors(layoutOf(kind))
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return beside(dir, func(part string) error {
		if err := e.weights(part, tensors); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(part, "config.json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
		if err := e.copyTokenizer(part); err != nil {
			return err
		}
		return e.check(part)
	})
}

// beside lets write fill a folder next to dir, and renames it. Nothing is left where that fails.
func beside(dir string, write func(part string) error) (err error) {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return fmt.Errorf("%s: is there already and not empty", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if err := os.Chmod(part, 0o755); err != nil {
		return err
	}
	if err := write(part); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(part, dir)
}

// check reads the folder as an import would, and compares shapes and types with what was asked.
func (e Export) check(dir string) error {
	w, err := Open(dir)
	if err != nil {
		return fmt.Errorf("exported folder: %w", err)
	}
	defer w.Close()
	if err := w.Fits(e.Model); err != nil {
		return fmt.Errorf("exported folder: %w", err)
	}
	for _, name := range sorted(w.arrays) {
		if got := w.arrays[name].DType; got != e.DType {
			return fmt.Errorf("exported folder: tensor %q is of type %s, not %s", name, got, e.DType)
		}
	}
	return nil
}

// part is a parameter inside a tensor.
type part struct {
	param *nn.Param
	place place
}

// exported is a tensor to write.
type exported struct {
	name  string
	shape []int
	parts []part
}

func (t exported) elements() int {
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	return n
}

// tensors lists the folder's tensors in the model's order. A tied head is the embedding and has none.
func (e Export) tensors(l layout) ([]exported, error) {
	m := e.Model.Resolved()
	layers, err := nn.Whole(m)
	if err != nil {
		return nil, err
	}
	var out []exported
	at := map[string]int{}
	seen := map[*nn.Param]bool{}
	for _, layer := range layers {
		for _, p := range layer.Params() {
			if seen[p] {
				continue
			}
			seen[p] = true
			place, ok := l.place(m, p)
			if !ok {
				return nil, fmt.Errorf("%s: the layout has no tensor for it", p.Name)
			}
			i, begun := at[place.tensor]
			if !begun {
				i = len(out)
				at[place.tensor] = i
				out = append(out, exported{name: place.tensor, shape: place.shape})
			}
			out[i].parts = append(out[i].parts, part{p, place})
		}
	}
	return out, nil
}

// weights writes the files, and an index where they are several.
func (e Export) weights(dir string, tensors []exported) error {
	limit := e.ShardBytes
	if limit == 0 {
		limit = defaultShard
	}
	var files [][]safetensors.Spec
	var size, total int64
	for _, t := range tensors {
		n := int64(t.elements()) * int64(e.DType.Size())
		if len(files) == 0 || size+n > limit && size > 0 {
			files, size = append(files, nil), 0
		}
		size, total = size+n, total+n
		last := len(files) - 1
		files[last] = append(files[last], safetensors.Spec{Name: t.name, DType: e.DType, Shape: t.shape, Write: func(w io.Writer) error { return e.tensor(w, t) }})
	}
	index := map[string]string{}
	for i, specs := range files {
		name := singleFile
		if len(files) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(files))
		}
		if err := safetensors.Create(filepath.Join(dir, name), map[string]string{"format": "pt"}, specs); err != nil {
			return err
		}
		for _, s := range specs {
			index[s.Name] = name
		}
	}
	if len(files) == 1 {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": index}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, indexFile), append(text, '\n'), 0o644)
}

// chunk is how many elements are converted at a time.
const chunk = 1 << 16

// tensor writes one tensor: straight through where it is a parameter in its own order, or by way of one copy.
func (e Export) tensor(w io.Writer, t exported) error {
	p := t.parts[0]
	if len(t.parts) == 1 && p.place.straight(p.param) {
		return e.elements(w, t.name, t.elements(), func(dst []float64, first int) error { return e.From.Values(dst, p.param, first) })
	}
	whole := make([]float64, t.elements())
	buf := make([]float64, chunk)
	for _, p := range t.parts {
		cols := p.param.Shape[len(p.param.Shape)-1]
		for first := 0; first < p.param.Elements(); first += chunk {
			b := buf[:min(chunk, p.param.Elements()-first)]
			if err := e.From.Values(b, p.param, first); err != nil {
				return fmt.Errorf("%s: %w", p.param.Name, err)
			}
			for i, x := range b {
				whole[p.place.base+(first+i)/cols*p.place.row+(first+i)%cols*p.place.col] = x
			}
		}
	}
	return e.elements(w, t.name, len(whole), func(dst []float64, first int) error { copy(dst, whole[first:]); return nil })
}

// elements converts and writes; a number that the type cannot hold is an error.
func (e Export) elements(w io.Writer, name string, n int, values func(dst []float64, first int) error) error {
	buf, raw := make([]float64, min(n, chunk)), make([]byte, min(n, chunk)*e.DType.Size())
	most := map[safetensors.DType]float64{safetensors.F16: 65504, safetensors.BF16: math.MaxFloat32, safetensors.F32: math.MaxFloat32}[e.DType]
	for first := 0; first < n; first += chunk {
		b := buf[:min(chunk, n-first)]
		if err := values(b, first); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, x := range b {
			if !(math.Abs(x) <= most) {
				return fmt.Errorf("%s: element %d is %v, which %s does not hold", name, first+i, x, torchNames[e.DType])
			}
		}
		r := raw[:len(b)*e.DType.Size()]
		e.DType.Put(r, b)
		if _, err := w.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// tokenizerFiles are taken over from the folder that a model came from.
var tokenizerFiles = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
	"tokenizer.model", "generation_config.json"}

func (e Export) copyTokenizer(dir string) error {
	if e.Like == "" {
		return nil
	}
	for _, name := range tokenizerFiles {
		text, err := os.ReadFile(filepath.Join(e.Like, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Types lists the names that DTypes knows.
func Types() []string {
	var names []string
	for n := range DTypes {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
