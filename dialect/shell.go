package dialect

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Bounds on what a script may make: variables may double with each line, and a configuration never needs to.
const (
	maxVariable = 16 << 10
	maxElements = 4096
)

// commands evaluates a launch script as far as launch scripts go (assignments, arrays, parameter expansion, arithmetic, tests) and returns the
// arguments of each command that it would run. Nothing is run: no process, no file, no substitution of a command's output, which is empty.
// Loops and functions are errors.
func commands(script string) ([][]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("not a shell script: %w", err)
	}
	s := &shell{vars: map[string]expand.Variable{}}
	s.config = &expand.Config{Env: s, CmdSubst: func(io.Writer, *syntax.CmdSubst) error { return nil }}
	if err := s.statements(file.Stmts); err != nil && !errors.Is(err, errExit) {
		return nil, err
	}
	return s.calls, nil
}

var errExit = errors.New("exit")

type shell struct {
	vars   map[string]expand.Variable
	config *expand.Config
	calls  [][]string
}

// Get, Each and Set make the shell its own environment; the process's is not seen.
func (s *shell) Get(name string) expand.Variable { return s.vars[name] }

func (s *shell) Each(f func(string, expand.Variable) bool) {
	for k, v := range s.vars {
		if !f(k, v) {
			return
		}
	}
}

func (s *shell) Set(name string, v expand.Variable) error {
	if len(v.Str) > maxVariable || len(v.List) > maxElements {
		return fmt.Errorf("variable %s grows beyond %d bytes", name, maxVariable)
	}
	v.Set = true
	s.vars[name] = v
	return nil
}

func (s *shell) statements(list []*syntax.Stmt) error {
	for _, st := range list {
		if err := s.command(st.Cmd); err != nil {
			if errors.Is(err, errExit) {
				return err
			}
			return fmt.Errorf("line %d: %w", st.Pos().Line(), err)
		}
	}
	return nil
}

func (s *shell) command(c syntax.Command) error {
	switch c := c.(type) {
	case nil:
		return nil
	case *syntax.CallExpr:
		return s.call(c)
	case *syntax.DeclClause: // export, declare, local
		for _, a := range c.Args {
			if a.Name != nil && (a.Value != nil || a.Array != nil) {
				if err := s.assign(a); err != nil {
					return err
				}
			}
		}
		return nil
	case *syntax.IfClause:
		return s.branch(c)
	case *syntax.Block:
		return s.statements(c.Stmts)
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			return s.command(c.X.Cmd) // what the launch is piped into says nothing of it
		}
		ok, err := s.holds(c.X)
		if err != nil {
			return err
		}
		if ok == (c.Op == syntax.AndStmt) {
			return s.command(c.Y.Cmd)
		}
		return nil
	case *syntax.TestClause, *syntax.ArithmCmd:
		return nil
	}
	return fmt.Errorf("%s is not read here", strings.TrimPrefix(fmt.Sprintf("%T", c), "*syntax."))
}

func (s *shell) call(c *syntax.CallExpr) error {
	for _, a := range c.Assigns {
		if err := s.assign(a); err != nil {
			return err
		}
	}
	if len(c.Args) == 0 {
		return nil
	}
	args, err := s.fields(c.Args)
	if err != nil || len(args) == 0 {
		return err
	}
	if args[0] == "exit" {
		return errExit
	}
	s.calls = append(s.calls, args)
	return nil
}

func (s *shell) assign(a *syntax.Assign) error {
	old := s.vars[a.Name.Value]
	switch {
	case a.Array != nil:
		words := make([]*syntax.Word, 0, len(a.Array.Elems))
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				return errors.New("arrays with indices are not read here")
			}
			words = append(words, e.Value)
		}
		list, err := s.fields(words)
		if err != nil {
			return err
		}
		if a.Append {
			list = append(old.List, list...)
		}
		return s.Set(a.Name.Value, expand.Variable{Kind: expand.Indexed, List: list})
	case a.Value == nil:
		return s.Set(a.Name.Value, expand.Variable{Kind: expand.String})
	}
	if err := tame(a.Value); err != nil {
		return err
	}
	v, err := expand.Literal(s.config, a.Value)
	if err != nil {
		return err
	}
	if a.Append {
		v = old.String() + v
	}
	return s.Set(a.Name.Value, expand.Variable{Kind: expand.String, Str: v})
}

// fields expands words into arguments.
func (s *shell) fields(words []*syntax.Word) ([]string, error) {
	for _, w := range words {
		if err := tame(w); err != nil {
			return nil, err
		}
	}
	out, err := expand.Fields(s.config, words...)
	if err != nil {
		return nil, err
	}
	if len(out) > maxElements {
		return nil, fmt.Errorf("more than %d arguments", maxElements)
	}
	return out, nil
}

// tame refuses the two expansions whose output may be far longer than what they read.
func tame(w *syntax.Word) error {
	var err error
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Repl != nil {
				err = errors.New("${NAME/a/b} is not read here")
			}
		case *syntax.Lit:
			if strings.Contains(n.Value, "{") && strings.Contains(n.Value, "..") {
				err = errors.New("{1..9} is not read here")
			}
		}
		return err == nil
	})
	return err
}

func (s *shell) branch(c *syntax.IfClause) error {
	for ; c != nil; c = c.Else {
		ok := len(c.Cond) == 0 // else
		for _, st := range c.Cond {
			var err error
			if ok, err = s.holds(st); err != nil {
				return err
			}
		}
		if ok {
			return s.statements(c.Then)
		}
	}
	return nil
}

// arguments finds the flags of the training program among a script's commands: those of the last command that has any of the names; the
// launcher's own flags come before the program.
func arguments(calls [][]string, names ...string) (launcher, program []string) {
	for i := len(calls) - 1; i >= 0; i-- {
		for j, a := range calls[i] {
			name, _, _ := strings.Cut(a, "=")
			if !containsName(names, name) {
				continue
			}
			for k := j; k >= 0; k-- { // back to the program's file
				if ext := path.Ext(calls[i][k]); ext == ".py" {
					return calls[i][:k], calls[i][k+1:]
				}
			}
			return nil, calls[i]
		}
	}
	return nil, nil
}

func containsName(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
