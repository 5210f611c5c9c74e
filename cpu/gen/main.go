// Command gen writes package cpu's assembly: go generate ./cpu runs it.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	log.SetFlags(0)
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	files, err := generate()
	if err != nil {
		log.Fatal("gen: ", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			log.Fatal("gen: ", err)
		}
	}
}

// families are the files to write: NAME_amd64.s and its Go declarations NAME_amd64.go.
var families = []struct {
	name  string
	write func(*build.Context)
}{
	{"tile", tiles},
	{"pack", packs},
	{"rows", rows},
	{"peak", peaks},
	{"dropout", dropout},
	{"bfloat", bfloats},
	{"squares", squares},
	{"tile_bf16", bfloatTiles},
	{"tile_amx", amxTiles},
}

func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range families {
		ctx := build.NewContext()
		f.write(ctx)
		file, err := ctx.Result()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if err := pass.Compile.Execute(file); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		cfg := printer.Config{Name: "gen", Pkg: "cpu"}
		for suffix, p := range map[string]printer.Printer{"_amd64.s": printer.NewGoAsm(cfg), "_amd64.go": printer.NewStubs(cfg)} {
			text, err := p.Print(file)
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", f.name, suffix, err)
			}
			files[f.name+suffix] = text
		}
	}
	return files, nil
}
