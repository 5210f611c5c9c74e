package configs

import (
	"bytes"

	"github.com/pelletier/go-toml/v2"

	"triax/data"
	"triax/nn"
)

// Resolved is a copy in which every default that depends on other keys is written out: loading it again gives the same
// run. Keys that depend on the machine (threads, the default data source) stay as they are.
func Resolved(c *Config) *Config {
	r := *c
	m := &r.Model
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 {
		m.HeadDim = m.Width / m.Heads
	}
	if m.Hidden == 0 {
		m.Hidden = hidden(*m)
	}
	if m.Vocab == 0 {
		m.Vocab = data.VocabOf(r.Data.Tokenizer)
	}
	if m.Eps == 0 {
		m.Eps = 1e-5
	}
	if m.RopeBase == 0 {
		m.RopeBase = 10000
	}
	if m.InitStd == 0 {
		m.InitStd = 0.02
	}
	if r.Data.MaxTokens == 0 {
		r.Data.MaxTokens = data.DefaultMaxTokens
	}
	return &r
}

// hidden is the usual feed-forward width: 4 D, and 8/3 D rounded up to 64 where a third matrix gates it
// (Shazeer 2020, §3).
func hidden(m nn.Config) int {
	if m.Family == nn.Llama {
		return (m.Width*8/3 + 63) / 64 * 64
	}
	return 4 * m.Width
}

// TOML writes the configuration as a file that Load reads back to the same value.
func (c *Config) TOML() ([]byte, error) {
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	if err := e.Encode(c); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
