package trimtab

import (
	"go/ast"
	"strings"
	"testing"
)

// The budgets of a file and a function, in lines. A test may be longer: its
// story is one, and nobody calls it.
const (
	fileLines, functionLines         = 500, 70
	testFileLines, testFunctionLines = 600, 150
)

// spans returns how many lines a node takes.
func spans(f sourceFile, n ast.Node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

func TestNoFileIsLongerThanItsBudget(t *testing.T) {
	for _, f := range sources(t) {
		limit := fileLines
		if f.test {
			limit = testFileLines
		}
		// The end of the file itself: the syntax tree ends with its last declaration.
		if n := f.fset.File(f.ast.Pos()).LineCount(); n > limit+1 {
			t.Errorf("%s has %d lines, limit %d: give one of its concepts a file of its own", f.name, n, limit)
		}
	}
}

func TestNoFunctionIsLongerThanItsBudget(t *testing.T) {
	for _, f := range sources(t) {
		limit := functionLines
		if f.test || strings.HasSuffix(f.pkg, "test") {
			limit = testFunctionLines
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || isTable(fn.Body) {
				continue
			}
			if n := spans(f, fn); n > limit {
				t.Errorf("%s: %s has %d lines, limit %d: name its parts", f.fset.Position(fn.Pos()), fn.Name.Name, n, limit)
			}
		}
	}
}

// isTable reports whether a function only returns rows: at most one statement,
// then the return of one literal. It is data, since package variables are not
// allowed.
func isTable(body *ast.BlockStmt) bool {
	if len(body.List) == 0 || len(body.List) > 2 {
		return false
	}
	ret, ok := body.List[len(body.List)-1].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return false
	}
	_, ok = ret.Results[0].(*ast.CompositeLit)
	return ok
}
