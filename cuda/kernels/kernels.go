// Package kernels holds the CUDA C sources of the NVIDIA device, and reads the signatures of their kernels out of the text itself, so
// that arguments are packed by what a kernel really takes.
//
//	prelude.cuh + add.cu  ──compiled for float──▶ module ──▶ add(real* y, const real* x, i64 n)
//	                      └─compiled for bf16───▶ module ──▶ the same, of 2-byte elements
//
// Sources include nothing, so a compiler without any toolkit folder will do: NVRTC at start, or clang. Sums are taken in an
// order that depends on shapes alone and nothing uses atomics on floats: reruns are the same bits.
package kernels

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.cu *.cuh
var sources embed.FS

// Files are the sources of kernels, by name; those of Plain do not depend on the storage type.
func Files() []string {
	return []string{"attention.cu", "columns.cu", "copy.cu", "elementwise.cu", "embed.cu", "flash.cu", "loss.cu", "norm.cu", "update.cu"}
}

// Plain says whether a file's kernels are the same for every storage type.
func Plain(file string) bool { return file == "copy.cu" || file == "flash.cu" || file == "update.cu" }

// Source is the whole text to compile for a file: the prelude, what attention is over where it is about that, then the file.
func Source(file string) string {
	text := read("prelude.cuh")
	if file == "attention.cu" || file == "flash.cu" {
		text += "\n#line 1 \"attend.cuh\"\n" + read("attend.cuh")
	}
	return text + "\n#line 1 \"" + file + "\"\n" + read(file)
}

func read(name string) string {
	text, err := sources.ReadFile(name)
	if err != nil {
		panic(err) // the name of an embedded file is wrong
	}
	return string(text)
}

// Param is a kernel's parameter. Pointer parameters name what they point to: "real", "stat", "float", "double", "bf16", "i32", "u32".
type Param struct {
	Type    string
	Pointer bool
	Name    string
}

// Signature is what a kernel takes.
type Signature struct {
	Name   string
	File   string
	Params []Param
}

// String prints "add(real* y, real* x, i64 n)".
func (s Signature) String() string {
	words := make([]string, len(s.Params))
	for i, p := range s.Params {
		star := ""
		if p.Pointer {
			star = "*"
		}
		words[i] = p.Type + star + " " + p.Name
	}
	return s.Name + "(" + strings.Join(words, ", ") + ")"
}

var (
	kernel = regexp.MustCompile(`(?m)^KERNEL\((\w+)\)\(([^)]*)\)`)
	param  = regexp.MustCompile(`^(?:const )?(\w+)(\*?) (\w+)$`)
)

// Signatures reads the kernels of a text.
func Signatures(file, text string) ([]Signature, error) {
	var out []Signature
	for _, m := range kernel.FindAllStringSubmatch(text, -1) {
		s := Signature{Name: m[1], File: file}
		for p := range strings.SplitSeq(m[2], ",") {
			w := param.FindStringSubmatch(strings.TrimSpace(p))
			if w == nil {
				return nil, fmt.Errorf("%s: kernel %s: parameter %q", file, s.Name, strings.TrimSpace(p))
			}
			s.Params = append(s.Params, Param{Type: w[1], Pointer: w[2] != "", Name: w[3]})
		}
		out = append(out, s)
	}
	if n := strings.Count(text, "\nKERNEL("); n != len(out) {
		return nil, fmt.Errorf("%s: %d of %d kernels understood", file, len(out), n)
	}
	return out, nil
}

// All lists every kernel by name. It panics when a source does not parse or two kernels share a name.
func All() []Signature {
	var all []Signature
	for _, f := range Files() {
		list, err := Signatures(f, read(f))
		if err != nil {
			panic(err)
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b Signature) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			panic(fmt.Sprintf("kernels: %s is in %s and in %s", all[i].Name, all[i-1].File, all[i].File))
		}
	}
	return all
}
