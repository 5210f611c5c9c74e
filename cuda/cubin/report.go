package cubin

import (
	"fmt"
	"slices"
	"strings"
)

// row is a kernel in all its forms.
type row struct {
	name, file string
	registers  []string // by column
	worst      Kernel   // the largest of each
}

// Report is a table in Markdown: a line a kernel, its registers in each form, and the largest stack, spills and shared memory of all forms.
func Report(all []Module) string {
	var columns []string
	rows := map[string]*row{}
	for _, m := range all {
		columns = appendNew(columns, m.column())
	}
	for _, m := range all {
		for _, k := range m.Kernels {
			r := rows[k.Name]
			if r == nil {
				r = &row{name: k.Name, file: m.File, registers: make([]string, len(columns))}
				rows[k.Name] = r
			}
			r.registers[slices.Index(columns, m.column())] = fmt.Sprint(k.Registers)
			r.worst.Stack, r.worst.Shared = max(r.worst.Stack, k.Stack), max(r.worst.Shared, k.Shared)
			r.worst.SpillStores, r.worst.SpillLoads = max(r.worst.SpillStores, k.SpillStores), max(r.worst.SpillLoads, k.SpillLoads)
			r.worst.Code = max(r.worst.Code, k.Code)
		}
	}
	ordered := make([]*row, 0, len(rows))
	for _, r := range rows {
		ordered = append(ordered, r)
	}
	slices.SortFunc(ordered, func(a, b *row) int { return strings.Compare(a.file+" "+a.name, b.file+" "+b.name) })
	var b strings.Builder
	fmt.Fprintf(&b, "| kernel | file | %s | stack | spilled | shared | code |\n|---|---|%s---|---|---|---|\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, r := range ordered {
		for i, n := range r.registers {
			if n == "" {
				r.registers[i] = "-"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d |\n", r.name, r.file, strings.Join(r.registers, " | "), r.worst.Stack, r.worst.SpillStores+r.worst.SpillLoads, r.worst.Shared, r.worst.Code)
	}
	return b.String()
}

// column is a module's form: "sm_90 bf16".
func (m Module) column() string {
	if m.BF16 {
		return m.Arch + " bf16"
	}
	return m.Arch + " fp32"
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
