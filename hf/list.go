package hf

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"triax/checkpoint/safetensors"
	"triax/nn"
)

// Tensor is one tensor of a folder, and the parameters that lie in it.
type Tensor struct {
	Name   string            `json:"name"`
	DType  safetensors.DType `json:"dtype"`
	Shape  []int             `json:"shape"`
	Norm   float64           `json:"norm"` // the root of the sum of squares
	Params []string          `json:"parameters"`
}

// Listing is what a folder holds.
type Listing struct {
	Dir        string   `json:"dir"`
	ModelType  string   `json:"model_type"`
	Parameters int      `json:"parameters"` // elements; those of a tied table once
	Tensors    []Tensor `json:"tensors"`
}

// List reads every tensor, in the order of the model.
func (w *Weights) List() (*Listing, error) {
	l := &Listing{Dir: w.Dir, ModelType: w.Config.ModelType}
	layers, err := nn.Whole(w.Model.Resolved())
	if err != nil {
		return nil, err
	}
	seen, at := map[*nn.Param]bool{}, map[string]int{}
	for _, layer := range layers {
		for _, p := range layer.Params() {
			if seen[p] {
				continue
			}
			seen[p] = true
			l.Parameters += p.Elements()
			name := w.Tensor(p)
			i, begun := at[name]
			if !begun {
				i = len(l.Tensors)
				at[name] = i
				a := w.arrays[name]
				l.Tensors = append(l.Tensors, Tensor{Name: name, DType: a.DType, Shape: a.Shape, Norm: a.norm()})
			}
			l.Tensors[i].Params = append(l.Tensors[i].Params, p.Name)
		}
	}
	return l, nil
}

func (a array) norm() float64 {
	sum, size, raw := 0.0, a.DType.Size(), a.bytes()
	buf := make([]float64, min(chunk, a.Elements()))
	for len(raw) > 0 {
		b := buf[:min(len(buf), len(raw)/size)]
		a.DType.Values(b, raw)
		raw = raw[len(b)*size:]
		for _, x := range b {
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// String is a line a tensor.
func (l *Listing) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s, %d parameters in %d tensors\n", l.Dir, l.ModelType, l.Parameters, len(l.Tensors))
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, t := range l.Tensors {
		fmt.Fprintf(w, "%s\t%s\t%v\tnorm %.6g\t%s\n", t.Name, t.DType, t.Shape, t.Norm, strings.Join(t.Params, " "))
	}
	_ = w.Flush() // into memory
	return s.String()
}
