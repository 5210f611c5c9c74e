package hf_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/checkpoint/safetensors"
	"triax/hf"
	"triax/nn"
)

// waves is a source of values that differ by name and place, adapters included.
type waves struct{}

func (waves) Values(dst []float64, p *nn.Param, first int) error {
	h := fnv.New32a()
	h.Write([]byte(p.Name))
	for i := range dst {
		dst[i] = math.Sin(float64(h.Sum32()%1000) + 0.7*float64(first+i))
	}
	return nil
}

// arraysOf is the values of every array of a file.
func arraysOf(t *testing.T, path string) (values map[string][]float64, shapes map[string][]int) {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	values, shapes = map[string][]float64{}, map[string][]int{}
	for name, a := range f.Arrays {
		values[name], shapes[name] = make([]float64, a.Elements()), a.Shape
		a.DType.Values(values[name], f.Bytes(a))
	}
	return values, shapes
}

// TestAdapters: a folder of adapters means what the merged model is: for every matrix of the base, alpha/r B A of its own rank and alpha, transposed
// where the base is, is the difference between the merged model and the plain one.
func TestAdapters(t *testing.T) {
	for _, m := range []nn.Config{
		{Family: nn.GPT2, LoRATargets: []string{"q", "v", "out", "up", "down"}},
		{Family: nn.GPT2, LoRATargets: []string{"k"}},
		{Family: nn.Llama, QKNorm: true, HeadDim: 6, KVHeads: 2, LoRATargets: []string{"q", "k", "v", "out", "gate", "up", "down"}},
	} {
		m.Layers, m.Width, m.Heads, m.Vocab, m.Sequence, m.LoRARank, m.LoRAAlpha = 2, 16, 4, 31, 8, 3, 5
		m = m.Resolved()
		base := m
		base.LoRARank, base.LoRAAlpha, base.LoRATargets = 0, 0, nil
		dir := t.TempDir()
		for name, from := range map[string]nn.Source{"plain": waves{}, "merged": &hf.Merged{Model: m, From: waves{}}} {
			if err := (hf.Export{Model: base, From: from, DType: safetensors.F32}).Write(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := (hf.Adapters{Model: m, From: waves{}, DType: safetensors.F32, Base: "base"}).Write(filepath.Join(dir, "adapter")); err != nil {
			t.Fatal(err)
		}
		var c struct {
			R        int                `json:"r"`
			Alpha    float64            `json:"lora_alpha"`
			Targets  []string           `json:"target_modules"`
			Ranks    map[string]int     `json:"rank_pattern"`
			Alphas   map[string]float64 `json:"alpha_pattern"`
			Transpos bool               `json:"fan_in_fan_out"`
		}
		text, err := os.ReadFile(filepath.Join(dir, "adapter", "adapter_config.json"))
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			t.Fatal(err)
		}
		plain, shapes := arraysOf(t, filepath.Join(dir, "plain", "model.safetensors"))
		merged, _ := arraysOf(t, filepath.Join(dir, "merged", "model.safetensors"))
		low, lowShapes := arraysOf(t, filepath.Join(dir, "adapter", "adapter_model.safetensors"))
		used := 0
		for name := range plain {
			key := "base_model.model." + strings.TrimSuffix(name, ".weight")
			a, b := low[key+".lora_A.weight"], low[key+".lora_B.weight"]
			want := make([]float64, len(plain[name]))
			if a != nil {
				used += 2
				target, rank, alpha := "", c.R, c.Alpha
				for _, s := range c.Targets {
					if strings.HasSuffix(key, "."+s) {
						target = s
					}
				}
				if n := c.Ranks[target]; n > 0 {
					rank, alpha = n, c.Alphas[target]
				}
				in, out := lowShapes[key+".lora_A.weight"][1], lowShapes[key+".lora_B.weight"][0]
				if target == "" || len(a) != rank*in || len(b) != out*rank || in*out != len(want) {
					t.Fatalf("%s: target %q, rank %d, A %d, B %d of %v", key, target, rank, len(a), len(b), shapes[name])
				}
				for o := range out {
					for i := range in {
						at := o*in + i
						if c.Transpos {
							at = i*out + o
						}
						for k := range rank {
							want[at] += alpha / float64(rank) * b[o*rank+k] * a[k*in+i]
						}
					}
				}
			}
			for i, x := range want {
				if d := merged[name][i] - plain[name][i] - x; math.Abs(d) > 1e-5 {
					t.Fatalf("%s %v: element %d of the merged model is %g off", m.Family, name, i, d)
				}
			}
		}
		if used != len(low) || used == 0 {
			t.Errorf("%v: %d of %d arrays belong to the model", fmt.Sprint(m.LoRATargets), used, len(low))
		}
	}
	if err := (hf.Adapters{Model: nn.Config{Family: nn.GPT2}, From: waves{}, DType: safetensors.F32}).Write(t.TempDir()); err == nil {
		t.Error("a model without adapters has been written")
	}
}
