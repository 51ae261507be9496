package planner_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A type that nobody can keep in mind is several.
func TestNoTypeOfThePlannerHasMoreThan40MethodsOr25Fields(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	methods, fields := map[string]int{}, map[string]int{}
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				of := n.Recv.List[0].Type
				if p, ok := of.(*ast.StarExpr); ok {
					of = p.X
				}
				methods[of.(*ast.Ident).Name]++
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					fields[n.Name.Name] += max(1, len(f.Names))
				}
			}
		}
		return true
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, look)
	}
	for name, n := range methods {
		if n > 40 {
			t.Errorf("%s has %d methods", name, n)
		}
	}
	for name, n := range fields {
		if n > 25 {
			t.Errorf("%s has %d fields", name, n)
		}
	}
}
