// SPDX-License-Identifier: Apache-2.0

package provisioner_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// clock are the functions of package time that look at or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// TestPurity finds what no import line of the pure packages shows: the clock, goroutines, channels, init functions.
func TestPurity(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if !matchesAny(p.ImportPath, pure) {
			continue
		}
		for _, file := range p.GoFiles {
			fset := token.NewFileSet()
			parsed, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("%s: %v", p.short(), err)
				continue
			}
			for _, impurity := range impurities(fset, parsed) {
				t.Errorf("%s/%s: the core is a function of its arguments", p.short(), impurity)
			}
		}
	}
}

// TestPurityCanFail shows that every kind of impurity is found.
func TestPurityCanFail(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		want   []string
	}{
		"clock":     {source: `var now = time.Now()`, want: []string{"x.go:1: time.Now"}},
		"reference": {source: `var now = time.Now`, want: []string{"x.go:1: time.Now"}},
		"goroutine": {source: `func f() { go f() }`, want: []string{"x.go:1: go statement"}},
		"channel":   {source: `var c chan int`, want: []string{"x.go:1: channel"}},
		"init":      {source: `func init() {}`, want: []string{"x.go:1: init function"}},
		"clean":     {source: `func (s *S) init(d time.Duration) {}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fset := token.NewFileSet()
			parsed, err := parser.ParseFile(fset, "x.go", "package x; "+tt.source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if got := impurities(fset, parsed); !slices.Equal(got, tt.want) {
				t.Errorf("impurities() = %q, want %q", got, tt.want)
			}
		})
	}
}

func impurities(fset *token.FileSet, file *ast.File) []string {
	var found []string
	add := func(node ast.Node, what string) {
		position := fset.Position(node.Pos())
		found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(position.Filename), position.Line, what))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				add(n, "time."+n.Sel.Name)
			}
		case *ast.GoStmt:
			add(n, "go statement")
		case *ast.ChanType:
			add(n, "channel")
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				add(n, "init function")
			}
		}
		return true
	})
	return found
}
