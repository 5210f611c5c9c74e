package dialect

import (
	"errors"
	"fmt"
	"strconv"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// holds says whether a condition is true. Files do not exist here, and commands other than tests succeed.
func (s *shell) holds(st *syntax.Stmt) (bool, error) {
	ok, err := s.condition(st.Cmd)
	return ok != st.Negated, err
}

func (s *shell) condition(c syntax.Command) (bool, error) {
	switch c := c.(type) {
	case *syntax.TestClause:
		return s.test(c.X)
	case *syntax.CallExpr:
		args, err := s.fields(c.Args)
		if err != nil {
			return false, err
		}
		if len(args) > 1 && args[0] == "[" {
			return bracket(args[1 : len(args)-1])
		}
		return true, s.call(c)
	case *syntax.BinaryCmd:
		x, err := s.holds(c.X)
		if err != nil || x == (c.Op == syntax.OrStmt) {
			return x, err
		}
		return s.holds(c.Y)
	}
	return false, errors.New("this condition is not read here")
}

// test evaluates [[ ... ]].
func (s *shell) test(x syntax.TestExpr) (bool, error) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return s.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			ok, err := s.test(x.X)
			return !ok, err
		}
		v, err := s.word(x.X)
		return unary(x.Op.String(), v), err
	case *syntax.BinaryTest:
		if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
			a, err := s.test(x.X)
			if err != nil || a == (x.Op == syntax.OrTest) {
				return a, err
			}
			return s.test(x.Y)
		}
		a, err := s.word(x.X)
		if err != nil {
			return false, err
		}
		b, err := s.word(x.Y)
		if err != nil {
			return false, err
		}
		return binary(a, x.Op.String(), b)
	case *syntax.Word:
		v, err := s.word(x)
		return v != "", err
	}
	return false, errors.New("this test is not read here")
}

func (s *shell) word(x syntax.TestExpr) (string, error) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return "", errors.New("this test is not read here")
	}
	if err := tame(w); err != nil {
		return "", err
	}
	return expand.Literal(s.config, w)
}

// bracket evaluates [ ... ], whose words are expanded already.
func bracket(args []string) (bool, error) {
	switch {
	case len(args) == 0:
		return false, nil
	case len(args) > 1 && args[0] == "!":
		ok, err := bracket(args[1:])
		return !ok, err
	case len(args) == 1: // also "-z" with an empty, unquoted variable
		return args[0] != "-n", nil
	case len(args) == 2:
		return unary(args[0], args[1]), nil
	case len(args) == 3:
		return binary(args[0], args[1], args[2])
	}
	return false, fmt.Errorf("test %v is not read here", args)
}

func unary(op, v string) bool {
	switch op {
	case "-z":
		return v == ""
	case "-n":
		return v != ""
	}
	return false // tests of files
}

func binary(a, op, b string) (bool, error) {
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	numbers := errA == nil && errB == nil
	switch op {
	case "=", "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	case "-eq":
		return numbers && x == y, nil
	case "-ne":
		return numbers && x != y, nil
	case "-gt":
		return numbers && x > y, nil
	case "-ge":
		return numbers && x >= y, nil
	case "-lt":
		return numbers && x < y, nil
	case "-le":
		return numbers && x <= y, nil
	}
	return false, fmt.Errorf("test %s is not read here", op)
}
