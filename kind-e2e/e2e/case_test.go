// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

func TestCasesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{rbacName: true}
	for _, c := range Cases() {
		if seen[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		seen[c.Name] = true
		if c.About == "" || strings.Contains(c.About, "\n") || c.Run == nil {
			t.Errorf("case %s has no line about it, or nothing to run", c.Name)
		}
		for name := range c.Rules.Skip {
			if !strings.Contains(strings.Join(judge.Invariants(), " "), name) {
				t.Errorf("case %s skips %s, which is no invariant", c.Name, name)
			}
		}
	}
}

func TestSelectCases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		match string
		want  []string
	}{
		"one":   {"^inflate$", []string{"inflate"}},
		"some":  {"kill9", []string{"kill9-withheld", "kill9-dropped", "kill9-parked"}},
		"none":  {"no such case", nil},
		"order": {"thousand|inflate", []string{"inflate", "thousand", "thousand-limited"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range selectCases(regexp.MustCompile(tc.match)) {
				got = append(got, c.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("cases (-want +got):\n%s", diff)
			}
		})
	}
	if got := selectCases(nil); len(got) != len(Cases()) {
		t.Errorf("without an expression %d cases run, wanted all %d", len(got), len(Cases()))
	}
}

// A change that changes nothing would make the case test the shipped configuration.
func TestBadConfigsDiffer(t *testing.T) {
	t.Parallel()
	shipped, err := os.ReadFile(filepath.Join("..", "..", "manifests", "base", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range badConfigs {
		if c.old != "" && !strings.Contains(string(shipped), c.old) {
			t.Errorf("%s: the shipped configuration has no %q to change", c.name, c.old)
		}
	}
}

func TestTokenID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		token, want string
		wantErr     bool
	}{
		"token":     {token: "e30.eyJqdGkiOiJhYmMifQ.sig", want: "JTI=abc"},
		"no JWT":    {token: "secret", wantErr: true},
		"no base64": {token: "a.=.c", wantErr: true},
		"no JSON":   {token: "a.YWJj.c", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tokenID(tc.token)
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("tokenID = %q, %v; want %q, error %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
