package cubin

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	entry = regexp.MustCompile(`Compiling entry function '(\w+)'`)
	spill = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	used  = regexp.MustCompile(`Used (\d+) registers`)
	smem  = regexp.MustCompile(`(\d+) bytes smem`)
)

// Verbose is the compiler's option for the log that ReadLog reads.
const Verbose = "--ptxas-options=-v"

// ReadLog lists what the assembler says of each kernel it compiled, by name.
func ReadLog(log string) map[string]Kernel {
	out := map[string]Kernel{}
	name, ofEntry := "", false
	number := func(s string) int { n, _ := strconv.Atoi(s); return n } // digits, by the patterns
	for line := range strings.Lines(log) {
		if m := entry.FindStringSubmatch(line); m != nil {
			name, ofEntry = m[1], false
			out[name] = Kernel{Name: name}
			continue
		}
		if what, ok := strings.CutPrefix(strings.TrimSpace(line), "ptxas info    : Function properties for "); ok {
			ofEntry = strings.TrimSpace(what) == name // else of a function that it calls
			continue
		}
		k, ok := out[name]
		if !ok {
			continue
		}
		if m := spill.FindStringSubmatch(line); m != nil && ofEntry {
			k.Stack, k.SpillStores, k.SpillLoads = number(m[1]), number(m[2]), number(m[3])
		}
		if m := used.FindStringSubmatch(line); m != nil {
			k.Registers = number(m[1])
			if m := smem.FindStringSubmatch(line); m != nil {
				k.Shared = number(m[1])
			}
		}
		out[name] = k
	}
	return out
}
