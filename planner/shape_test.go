package planner_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A type that nobody can keep in mind is several.
func TestNoTypeOfThePlannerHasMoreThan40MethodsOr25Fields(t *testing.T) {
	var names []string
	for _, of := range []string{"*.go", "allocation/*.go", "reason/*.go"} { // the planner, and what its rounds are made of
		found, err := filepath.Glob(of)
		if err != nil || len(found) == 0 {
			t.Fatal(of, err)
		}
		names = append(names, found...)
	}
	methods, fields, in := map[string]int{}, map[string]int{}, ""
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				of := n.Recv.List[0].Type
				if p, ok := of.(*ast.StarExpr); ok {
					of = p.X
				}
				methods[in+of.(*ast.Ident).Name]++
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					fields[in+n.Name.Name] += max(1, len(f.Names))
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
		in = filepath.Dir(name) + "/"
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

func TestThePlannerWithoutItsSubPackagesHasAtMost3500Lines(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(b, []byte("\n"))
	}
	if lines == 0 || lines > 3500 {
		t.Errorf("%d lines", lines)
	}
}
