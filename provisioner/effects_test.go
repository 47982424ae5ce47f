// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestEveryActionIsCarriedOut reads the source: an action that nobody carries out would be a promise that nobody keeps.
func TestEveryActionIsCarriedOut(t *testing.T) {
	t.Parallel()
	actions := receiversOf(t, "lifecycle/action.go", "Key")
	handled := casesOf(t, "effects.go")
	if len(actions) < 15 {
		t.Fatalf("found only %d actions", len(actions))
	}
	for _, a := range actions {
		if !slices.Contains(handled, "lifecycle."+a) {
			t.Errorf("action %s is neither applied to the scheduler nor carried out", a)
		}
	}
}

func receiversOf(t *testing.T, file, method string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Recv != nil && fn.Name.Name == method {
			if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
				out = append(out, id.Name)
			}
		}
	}
	return out
}

func casesOf(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				if sel, ok := e.(*ast.SelectorExpr); ok {
					out = append(out, sel.X.(*ast.Ident).Name+"."+sel.Sel.Name)
				}
			}
		}
		return true
	})
	return out
}

func TestUnknownActionIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := (&Provisioner{}).effect(t.Context(), unknownAction{}); !errors.Is(err, errUnknownAction) {
		t.Errorf("effect = %v, want errUnknownAction", err)
	}
}

type unknownAction struct{}

func (unknownAction) Key() string { return "unknown" }

func TestCutKeepsASentenceWithin250Characters(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{"short": "no", "long": strings.Repeat("ä", 400)} {
		if got := []rune(cut(in)); len(got) > 250 || len(in) < 250 && string(got) != in {
			t.Errorf("%s: cut gave %d characters: %s", name, len(got), string(got))
		}
	}
}
