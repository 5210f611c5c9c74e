package schedule

import (
	"reflect"
	"strings"
	"testing"
)

func TestTextAndBack(t *testing.T) {
	for _, name := range Names() {
		s := mustNew(t, name, 3, 7, 0)
		got, err := Parse(s.Text())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Errorf("%s: reads back as\n%s\nwas\n%s", name, got.Text(), s.Text())
		}
	}
}

func TestParseTakesComments(t *testing.T) {
	s, err := Parse("# mine\nschedule own\n\nstages 2\nmicrobatches 1\n0: 0F0 # first\n0: 0B0 0R U\n1: 1F0 1I0 1W0 1R U\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(s); err != nil {
		t.Error(err)
	}
	if want := []Op{{0, F, 0}, {0, B, 0}, {0, R, 0}, {0, U, 0}}; !reflect.DeepEqual(s.Ranks[0], want) {
		t.Errorf("rank 0: %v, want %v", s.Ranks[0], want)
	}
}

func TestParseNamesEveryFault(t *testing.T) {
	_, err := Parse("schedule a b\nstages none\nstages 2\nplace 0 x\nmicro 3\n1: 0F0\n0: 0F 0F01 F0 0R0 X 0B0\n")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"line 1: schedule takes one value, has 2", `line 2: stages "none"`, "line 3: stages is given twice", `line 4: place: rank "x"`,
		`line 5: "micro"`, `line 6: rank "1"`, `op "0F"`, `op "0F01"`, `op "F0"`, `op "0R0"`, `op "X"`, "microbatches is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if _, err := Parse(""); err == nil {
		t.Error("empty text was read")
	}
	if _, err := Parse("schedule a\nstages 1000000\nmicrobatches 1000000\n0: U"); err == nil {
		t.Error("a million stages without ops were read")
	}
}

// FuzzParse: no text makes Parse or Verify panic; what parses prints and parses to the same.
func FuzzParse(f *testing.F) {
	f.Add("schedule own\nstages 2\nmicrobatches 1\n0: 0F0 0B0 0R U\n1: 1F0 1I0 1W0 1R U\n")
	f.Add("schedule a\nstages 1000000\nmicrobatches 1000000\nplace 0 0\n0: 0F0 U")
	f.Add(mustNew(f, "interleaved", 2, 3, 2).Text())
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.Text())
		if err != nil {
			t.Fatalf("what Text wrote does not parse: %v\n%s", err, s.Text())
		}
		if again.Text() != s.Text() {
			t.Fatalf("changed on the way:\n%s\n%s", s.Text(), again.Text())
		}
		if Verify(s) == nil {
			if _, err := Simulate(s, Uniform(1, 1, 1)); err != nil {
				t.Fatalf("verified, but cannot be run: %v", err)
			}
		}
	})
}

func mustNew(t testing.TB, name string, p, m, v int) *Schedule {
	t.Helper()
	s, err := New(name, p, m, v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
