package trimtab

import (
	"cmp"
	"go/ast"
	"path"
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

// The budgets of a type: a reader keeps no more of it in mind.
const typeMethods, typeFields = 40, 25

// size counts the methods and the fields of a type.
type size struct{ methods, fields int }

// sharedNames bounds the exported names of the root package, which every reader of the module must
// learn. The entry may only fall: values of one subject belong in a package of their own.
const sharedNames = 149

func TestTheRootPackageKeepsOnlyTheSharedWords(t *testing.T) {
	names := 0
	count := func(all ...*ast.Ident) {
		for _, name := range all {
			if name.IsExported() {
				names++
			}
		}
	}
	for _, f := range sources(t) {
		if f.test || f.pkg != "root" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					count(d.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						count(s.Name)
					case *ast.ValueSpec:
						count(s.Names...)
					}
				}
			}
		}
	}
	switch {
	case names > sharedNames:
		t.Errorf("the root package exports %d names, limit %d: give those of one subject a package", names, sharedNames)
	case names < sharedNames:
		t.Errorf("the root package exports %d names: lower the entry", names)
	}
}

func TestNoTypeIsLargerThanItsBudget(t *testing.T) {
	for name, has := range sizes(sources(t)) {
		if has.methods > typeMethods || has.fields > typeFields {
			t.Errorf("%s has %d methods and %d fields, limits %d and %d: make it several types, each with fields of its own", name, has.methods, has.fields, typeMethods, typeFields)
		}
	}
}

// sizes returns the size of each type, by its package and name, outside tests and generated code.
func sizes(files []sourceFile) map[string]size {
	methods, structs := map[string]map[string]bool{}, map[string]structType{}
	for _, f := range files {
		if f.test || ast.IsGenerated(f.ast) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					break
				}
				of := f.nameOf(n.Recv.List[0].Type)
				if methods[of] == nil {
					methods[of] = map[string]bool{}
				}
				methods[of][n.Name.Name] = true // it counts once, though each system may have its own
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					structs[f.nameOf(n.Name)] = structType{f, s}
				}
			}
			return true
		})
	}
	all := map[string]size{}
	for name := range methods {
		all[name] = size{methods: len(methods[name])}
	}
	for name, s := range structs {
		all[name] = size{len(methods[name]), s.fields(structs)}
	}
	return all
}

// nameOf returns the package and the name of the type that an expression in f names, or "".
func (f sourceFile) nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return f.nameOf(e.X)
	case *ast.IndexExpr:
		return f.nameOf(e.X)
	case *ast.IndexListExpr:
		return f.nameOf(e.X)
	case *ast.Ident:
		return f.pkg + "." + e.Name
	case *ast.SelectorExpr:
		for _, imp := range imports(f.ast) {
			if in, ours := strings.CutPrefix(imp, modulePath); ours && path.Base(imp) == e.X.(*ast.Ident).Name {
				return cmp.Or(strings.TrimPrefix(in, "/"), "root") + "." + e.Sel.Name
			}
		}
	}
	return ""
}

// structType is a struct and the file that declares it.
type structType struct {
	in sourceFile
	of *ast.StructType
}

// fields counts the fields of a struct and of those of this module that it embeds. A struct that
// gives each of its fields a key, in a file or a message, is a table and has none.
func (s structType) fields(all map[string]structType) (n int) {
	table := true
	for _, f := range s.of.Fields.List {
		inner, ok := all[s.in.nameOf(f.Type)]
		if ok && f.Names == nil {
			own := inner.fields(all)
			n, table = n+own, table && own == 0
		} else {
			n, table = n+max(1, len(f.Names)), table && f.Tag != nil
		}
	}
	if table {
		return 0
	}
	return n
}
