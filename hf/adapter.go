package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"triax/checkpoint/safetensors"
	"triax/nn"
)

// Merged is a Source of a model without adapters: W + alpha/r B A of one with them (Hu et al. 2022, §4.1).
type Merged struct {
	Model nn.Config // with adapters
	From  nn.Source

	mu   sync.Mutex
	name string // of the adapter at hand
	a, b []float64
}

// Values adds the adapter's part where the parameter has one.
func (m *Merged) Values(dst []float64, p *nn.Param, first int) error {
	if err := m.From.Values(dst, p, first); err != nil {
		return err
	}
	base, ok := adapted(m.Model, p)
	if !ok {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, in := m.Model.LoRARank, p.Shape[1]
	if m.name != base {
		var err error
		if m.a, m.b, err = pairOf(m.From, base, p, r); err != nil {
			return err
		}
		m.name = base
	}
	scale := m.Model.LoRAAlpha / float64(r)
	for i := range dst {
		row, col := (first+i)/in, (first+i)%in
		sum := 0.0
		for k := range r {
			sum += m.b[row*r+k] * m.a[k*in+col]
		}
		dst[i] += scale * sum
	}
	return nil
}

// adapted is the name that the adapter of a matrix goes by; false for a parameter without one.
func adapted(m nn.Config, p *nn.Param) (base string, ok bool) {
	base, ok = strings.CutSuffix(p.Name, ".weight")
	part := base[strings.LastIndexByte(base, '.')+1:]
	_, _, inBlock := split(p.Name)
	return base, ok && inBlock && len(p.Shape) == 2 && m.LoRARank > 0 && slices.Contains(m.LoRATargets, part)
}

// pairOf reads A [r In] and B [Out r].
func pairOf(from nn.Source, base string, p *nn.Param, r int) (a, b []float64, err error) {
	a, b = make([]float64, r*p.Shape[1]), make([]float64, p.Shape[0]*r)
	err = errors.Join(
		from.Values(a, &nn.Param{Name: base + ".lora_A.weight", Shape: []int{r, p.Shape[1]}, Adapter: true}, 0),
		from.Values(b, &nn.Param{Name: base + ".lora_B.weight", Shape: []int{p.Shape[0], r}, Adapter: true}, 0))
	return a, b, err
}

// Adapters says how low-rank adapters are written in the layout of PEFT: adapter_config.json and adapter_model.safetensors, to be loaded beside
// the folder Base.
type Adapters struct {
	Model nn.Config
	From  nn.Source
	DType safetensors.DType
	Base  string // the folder, or the name, of the model that they belong to
}

// module is the adapter of one matrix of the folder. GPT-2's fused matrix takes those of queries, keys and values together: their A below
// one another, their B along the diagonal, each scaled as it was.
type module struct {
	name    string
	in, out int
	parts   []part
}

// Write makes the folder, beside dir and renamed.
func (e Adapters) Write(dir string) error {
	m := e.Model.Resolved()
	if m.LoRARank == 0 {
		return errors.New("model.lora_rank = 0: the model has no adapters")
	}
	if torchNames[e.DType] == "" {
		return fmt.Errorf("type %q: want one of %v", e.DType, Types())
	}
	plain := m
	plain.LoRARank, plain.LoRATargets = 0, nil
	kind := kindOf(m)
	if err := exportable(plain, kind); err != nil {
		return err
	}
	modules, err := e.modules(m, layoutOf(kind))
	if err != nil {
		return err
	}
	var specs []safetensors.Spec
	for _, mod := range modules {
		a, b, err := e.pair(m, mod)
		if err != nil {
			return err
		}
		rank := m.LoRARank * len(mod.parts)
		for _, t := range []struct {
			name   string
			shape  []int
			values []float64
		}{{"lora_A", []int{rank, mod.in}, a}, {"lora_B", []int{mod.out, rank}, b}} {
			name := "base_model.model." + mod.name + "." + t.name + ".weight"
			specs = append(specs, safetensors.Spec{Name: name, DType: e.DType, Shape: t.shape, Write: func(w io.Writer) error {
				return Export{DType: e.DType}.elements(w, name, len(t.values), func(dst []float64, first int) error { copy(dst, t.values[first:]); return nil })
			}})
		}
	}
	text, err := json.MarshalIndent(e.config(m, kind, modules), "", "  ")
	if err != nil {
		return err
	}
	return beside(dir, func(part string) error {
		if err := safetensors.Create(filepath.Join(part, "adapter_model.safetensors"), map[string]string{"format": "pt"}, specs); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(part, "adapter_config.json"), append(text, '\n'), 0o644)
	})
}

// modules lists the matrices of the folder that have adapters.
func (e Adapters) modules(m nn.Config, l layout) ([]module, error) {
	layers, err := nn.Whole(m)
	if err != nil {
		return nil, err
	}
	var out []module
	for _, layer := range layers {
		for _, p := range layer.Params() {
			if _, ok := adapted(m, p); !ok || p.Adapter {
				continue
			}
			at, ok := l.place(m, p)
			if !ok {
				return nil, fmt.Errorf("%s: the layout has no tensor for it", p.Name)
			}
			name := strings.TrimSuffix(at.tensor, ".weight")
			if n := len(out); n == 0 || out[n-1].name != name {
				rows := at.shape[0] * at.shape[1] / p.Shape[1]
				out = append(out, module{name: name, in: p.Shape[1], out: rows})
			}
			last := &out[len(out)-1]
			last.parts = append(last.parts, part{p, at})
		}
	}
	return out, nil
}

// pair is A and B of a module.
func (e Adapters) pair(m nn.Config, mod module) (a, b []float64, err error) {
	r, n := m.LoRARank, len(mod.parts)
	b = make([]float64, mod.out*r*n)
	for i, x := range mod.parts {
		base, _ := adapted(m, x.param)
		pa, pb, err := pairOf(e.From, base, x.param, r)
		if err != nil {
			return nil, nil, err
		}
		a = append(a, pa...)
		from := 0 // the part's first row in the matrix
		if x.place.row == 1 {
			from = x.place.base
		}
		for row := range x.param.Shape[0] {
			copy(b[(from+row)*r*n+i*r:][:r], pb[row*r:])
		}
	}
	return a, b, nil
}

func (e Adapters) config(m nn.Config, kind string, modules []module) map[string]any {
	targets, ranks, alphas := []string{}, map[string]int{}, map[string]any{}
	for _, mod := range modules {
		parts := strings.Split(mod.name, ".")
		name := strings.Join(parts[len(parts)-2:], ".") // "self_attn.q_proj", "attn.c_proj": the last word alone may stand for two
		if !slices.Contains(targets, name) {
			targets = append(targets, name)
		}
		if n := len(mod.parts); n > 1 {
			ranks[name], alphas[name] = n*m.LoRARank, decimal(float64(n)*m.LoRAAlpha)
		}
	}
	return map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": e.Base, "inference_mode": true,
		"r": m.LoRARank, "lora_alpha": decimal(m.LoRAAlpha), "lora_dropout": decimal(0), "bias": "none", "fan_in_fan_out": kind == "gpt2",
		"target_modules": targets, "rank_pattern": ranks, "alpha_pattern": alphas, "modules_to_save": nil, "use_rslora": false, "use_dora": false,
	}
}
