// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// command is one line of a script; testdata/README.md has the grammar.
type command struct {
	line int
	// mode is "" for an order, or how an expectation is tested: expect, within, always.
	mode string
	// span is the time of within and always.
	span time.Duration
	verb string
	args []string
	// keys are the key=value words.
	keys map[string]string
}

func (c command) String() string {
	return fmt.Sprintf("line %d: %s", c.line, strings.TrimSpace(c.mode+" "+c.verb+" "+strings.Join(c.args, " ")))
}

// parse reads a script. Unknown words are errors, so that no expectation is lost to a typing mistake.
func parse(script string) ([]command, error) {
	var out []command
	for i, text := range strings.Split(script, "\n") {
		words, err := fields(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		c, err := parseCommand(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		c.line = i + 1
		out = append(out, c)
	}
	return out, nil
}

func parseCommand(words []word) (command, error) {
	c := command{keys: map[string]string{}}
	known := orders
	switch first := words[0].text; first {
	case "expect", "within", "always":
		c.mode, known, words = first, expectations, words[1:]
		if first != "expect" {
			if len(words) == 0 {
				return c, fmt.Errorf("%s needs a duration", first)
			}
			d, err := time.ParseDuration(words[0].text)
			if err != nil || d <= 0 {
				return c, fmt.Errorf("%s needs a duration, not %q", first, words[0].text)
			}
			c.span, words = d, words[1:]
		}
		if len(words) == 0 {
			return c, fmt.Errorf("%s what?", first)
		}
	}
	c.verb = words[0].text
	want, ok := known[c.verb]
	if !ok {
		return c, fmt.Errorf("unknown word %q", c.verb)
	}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(w.text, "="); ok && !w.quoted && isKey(key) {
			c.keys[key] = value
		} else {
			c.args = append(c.args, w.text)
		}
	}
	if len(c.args) < want.min || len(c.args) > want.max {
		return c, fmt.Errorf("%s takes %d to %d words, not %d", c.verb, want.min, want.max, len(c.args))
	}
	return c, nil
}

// isKey is true for lower-case words: "<=5" and "cpu=1" are told apart.
func isKey(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLower(r) }) < 0
}

type word struct {
	text   string
	quoted bool
}

// fields splits a line at spaces. A word in double quotes is a Go string, { begins JSON until the end of the line,
// # begins a comment.
func fields(line string) ([]word, error) {
	var out []word
	for {
		line = strings.TrimLeft(line, " \t\r")
		switch {
		case line == "" || line[0] == '#':
			return out, nil
		case line[0] == '{':
			return append(out, word{strings.TrimRight(line, " \t\r"), true}), nil
		case line[0] == '"':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("unfinished string: %s", line)
			}
			text, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", quoted, err)
			}
			out, line = append(out, word{text, true}), line[len(quoted):]
		default:
			end := strings.IndexAny(line, " \t\r")
			if end < 0 {
				end = len(line)
			}
			out, line = append(out, word{line[:end], false}), line[end:]
		}
	}
}

// amount is a number that an expectation compares with: 5, <=5, >=5.
type amount struct {
	op    string
	value float64
}

func parseAmount(s string) (amount, error) {
	a := amount{op: "="}
	for _, op := range []string{"<=", ">="} {
		if rest, ok := strings.CutPrefix(s, op); ok {
			a.op, s = op, rest
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 {
		return a, fmt.Errorf("%q is no number", s)
	}
	a.value = v
	return a, nil
}

// check is an error unless have satisfies the amount.
func (a amount) check(what string, have float64) error {
	const rounding = 0.00005
	ok := have > a.value-rounding && have < a.value+rounding
	switch a.op {
	case "<=":
		ok = have < a.value+rounding
	case ">=":
		ok = have > a.value-rounding
	}
	if ok {
		return nil
	}
	return fmt.Errorf("%s: have %v, want %s%v", what, have, strings.TrimPrefix(a.op, "="), a.value)
}

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		script  string
		want    []command
		wantErr string
	}{
		"empty":                {script: "\n  # only a remark\n"},
		"order":                {script: `replicaset web 5 cpu=1`, want: []command{{line: 1, verb: "replicaset", args: []string{"web", "5"}, keys: map[string]string{"cpu": "1"}}}},
		"expectation":          {script: "\nexpect claims <=1", want: []command{{line: 2, mode: "expect", verb: "claims", args: []string{"<=1"}, keys: map[string]string{}}}},
		"with time":            {script: `always 30s event web-1 Nominated "a b" # why`, want: []command{{line: 1, mode: "always", span: 30 * time.Second, verb: "event", args: []string{"web-1", "Nominated", "a b"}, keys: map[string]string{}}}},
		"JSON":                 {script: `fault {"action": "CreateFleet"}`, want: []command{{line: 1, verb: "fault", args: []string{`{"action": "CreateFleet"}`}, keys: map[string]string{}}}},
		"unknown":              {script: "expect miracles 1", wantErr: `line 1: unknown word "miracles"`},
		"order as expectation": {script: "expect restart", wantErr: `line 1: unknown word "restart"`},
		"too few":              {script: "restart\nexpect claims", wantErr: "line 2: claims takes 1 to 1 words, not 0"},
		"no time":              {script: "within soon claims 1", wantErr: `line 1: within needs a duration, not "soon"`},
		"open quote":           {script: `expect event web-1 Nominated "a`, wantErr: `line 1: unfinished string: "a`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tc.script)
			if (err != nil) != (tc.wantErr != "") || err != nil && err.Error() != tc.wantErr {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(command{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text    string
		have    float64
		wantErr bool
	}{
		"equal": {text: "5", have: 5}, "not equal": {text: "5", have: 6, wantErr: true},
		"at most": {text: "<=1.45", have: 1.45}, "more": {text: "<=1.45", have: 1.46, wantErr: true},
		"at least": {text: ">=2", have: 3}, "less": {text: ">=2", have: 1, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := parseAmount(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.check("it", tc.have); (err != nil) != tc.wantErr {
				t.Errorf("check(%v) = %v", tc.have, err)
			}
		})
	}
}

// FuzzParse: no script makes the parser panic, and what it accepts has words that exist.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"expect claims 1", `fault {"a":1}`, `within 3s event a B "c\n"`, "pods a 3 cpu=1 memory=1Gi", "always -1s x", "\"", "=", "expect"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		commands, err := parse(script)
		if err != nil {
			return
		}
		for _, c := range commands {
			_, order := orders[c.verb]
			_, expectation := expectations[c.verb]
			if order == (c.mode != "") && expectation == (c.mode == "") {
				t.Errorf("%q was accepted as %+v", script, c)
			}
		}
	})
}
