package checkpoint

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"triax/checkpoint/safetensors"
)

// Report is what a checkpoint holds, for people and programs.
type Report struct {
	Dir     string         `json:"dir"`
	Step    int            `json:"step"`
	Mesh    string         `json:"mesh"`
	States  []string       `json:"states"`
	Files   int            `json:"files"`
	Bytes   int64          `json:"bytes"`
	Tensors []TensorReport `json:"tensors"`
}

// TensorReport is one parameter with the norms of its states.
type TensorReport struct {
	Name   string             `json:"name"`
	Shape  []int              `json:"shape"`
	DType  safetensors.DType  `json:"dtype"`
	Pieces int                `json:"pieces"` // stretches that make it up
	Norms  map[string]float64 `json:"norms"`  // of the weight, and of each state
}

// Report reads every element.
func (c *Checkpoint) Report() *Report {
	r := &Report{Dir: c.Dir, Step: c.Step, Mesh: c.Mesh, States: c.States, Files: len(c.files)}
	for _, name := range c.Names() {
		t := TensorReport{Name: name, Shape: c.Shape(name), Norms: map[string]float64{}}
		for _, kind := range append([]string{Weight}, c.States...) {
			sum := 0.0
			for _, e := range c.at[[2]string{kind, name}] {
				if kind == Weight {
					t.DType = e.DType
					t.Pieces++
				}
				r.Bytes += int64(e.Len() * e.DType.Size())
				sum += squares(e.DType, c.raw(e))
			}
			if len(c.at[[2]string{kind, name}]) > 0 {
				t.Norms[kind] = math.Sqrt(sum)
			}
		}
		r.Tensors = append(r.Tensors, t)
	}
	return r
}

// squares adds up the squares of raw elements, a part at a time.
func squares(d safetensors.DType, raw []byte) float64 {
	var buf [4096]float64
	sum := 0.0
	for len(raw) > 0 {
		n := min(len(buf), len(raw)/d.Size())
		d.Values(buf[:n], raw)
		for _, x := range buf[:n] {
			sum += x * x
		}
		raw = raw[n*d.Size():]
	}
	return sum
}

// JSON writes the report as one object.
func (r *Report) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// String is a line a parameter.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: step %d, written by %s; %d parameters, %d bytes in %d files, all checksums right\n", r.Dir, r.Step, r.Mesh, len(r.Tensors), r.Bytes, r.Files)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, t := range r.Tensors {
		fmt.Fprintf(w, "%s\t%s%v\t%d pieces\tnorm %.6g", t.Name, t.DType, t.Shape, t.Pieces, t.Norms[Weight])
		for _, kind := range r.States {
			if n, ok := t.Norms[kind]; ok {
				fmt.Fprintf(w, "\t%s %.6g", kind, n)
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}
