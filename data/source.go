package data

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// file is one document's place. name does not depend on where the source lies on this machine.
type file struct {
	path, name string
	chosen     bool // named by the user, not met in a directory
}

// find lists the files of all sources, each file once, in an order that depends on their names only.
// The order is by hash, so that a bound on the tokens takes an even sample of a tree, and so does the held-out end.
func find(sources []string) ([]file, Problems) {
	var files []file
	var problems Problems
	if len(sources) == 0 {
		root, err := goSource()
		if err != nil {
			problems.add("data.source", "", err.Error(), "name files, directories or globs of text")
			return nil, problems
		}
		files = walk(root, isLibrary, &problems)
	}
	for _, s := range sources {
		files = append(files, expand(s, &problems)...)
	}
	return ordered(files), problems
}

// goSource is the root of the Go standard library's source.
func goSource() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("the default source is the Go standard library, but `go env GOROOT` fails: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}

// isLibrary picks the standard library's own Go files: no commands, no copies of other modules, no test inputs.
func isLibrary(name string) bool {
	for _, part := range strings.Split(filepath.Dir(name), string(filepath.Separator)) {
		if part == "cmd" || part == "vendor" || part == "testdata" {
			return false
		}
	}
	return filepath.Ext(name) == ".go"
}

// expand lists the files of one source.
func expand(source string, problems *Problems) []file {
	const hint = "name a file, a directory or a glob that exists"
	info, err := os.Stat(source)
	switch {
	case err == nil && info.IsDir():
		files := walk(source, func(string) bool { return true }, problems)
		if len(files) == 0 {
			problems.add("data.source", source, "no file in this directory", hint)
		}
		return files
	case err == nil:
		return []file{{source, filepath.ToSlash(source), true}}
	case !errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(source, "*?["):
		problems.add("data.source", source, err.Error(), hint)
		return nil
	}
	matches, err := filepath.Glob(source)
	if err != nil {
		problems.add("data.source", source, "not a glob: "+err.Error(), `for example "texts/*.txt"`)
		return nil
	}
	if len(matches) == 0 {
		problems.add("data.source", source, "no such file or directory", hint)
	}
	var files []file
	for _, m := range matches {
		files = append(files, expand(m, problems)...)
	}
	return files
}

// walk lists the regular files under a directory; hidden ones are left out, links are not followed.
func walk(root string, keep func(name string) bool, problems *Problems) []file {
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			problems.add("data.source", path, err.Error(), "make it readable, or leave it out")
			return nil
		}
		if path != root && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err == nil && d.Type().IsRegular() && keep(name) {
			files = append(files, file{path: path, name: filepath.ToSlash(name)})
		}
		return err
	})
	if err != nil {
		problems.add("data.source", root, err.Error(), "make it readable, or leave it out")
	}
	return files
}

// ordered sorts by the hash of the name and drops files that two sources share.
func ordered(files []file) []file {
	seen := map[string]bool{}
	var out []file
	for _, f := range files {
		path, err := filepath.Abs(f.path)
		if err != nil {
			path = f.path
		}
		if !seen[path] {
			seen[path] = true
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b file) int {
		return cmp.Or(cmp.Compare(nameHash(a.name), nameHash(b.name)), cmp.Compare(a.name, b.name))
	})
	return out
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(h.Sum64())
}
