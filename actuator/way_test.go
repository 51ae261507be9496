package actuator_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The way of a plan is what a reader must read of this package to know what happens to a plan from
// its arrival to the write of a knob. Reading begins at onPlan. It follows, in the order of the
// source, each call of a function of this package that takes the plan or a part of it as a
// parameter or a receiver (see carries), and comes back to the rest of the calling function.
// Reading ends at the first call of [actuator.Knob].Write, or of a function that takes no
// part of the plan and calls it; the code of the knob is not counted. A function is read once.
// Functions that take neither plan nor part, but only amounts, times or a knob, are not on the way:
// they can be understood without it.
//
// A stay is a function on the way. A return is a turn back to a file that reading had left.
const (
	mostStays   = 15
	mostReturns = 3
)

// carries lists the types of a plan and of its parts.
func carries() []string {
	return []string{"bus.Delivery", "*trimtab.Plan", "*trimtab.Action", "[]trimtab.Action", "*trimtab.Enveloped", "*step", "*move", "[]*move"}
}

var rewrite = flag.Bool("rewrite", false, "write testdata/way.txt as the sources are now")

func TestAPlanPassesFewFunctionsUpToTheWrite(t *testing.T) {
	w := readWay(t)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A plan's way from its arrival to the write: way_test.go has the definition.\n# Made by: go test ./actuator -run APlanPassesFewFunctions -rewrite\n%d stays, %d returns\n", len(w.stays), w.returns)
	for _, s := range w.stays {
		fmt.Fprintf(&b, "%s\t%s\n", s.file, s.name)
	}
	golden := filepath.Join("testdata", "way.txt")
	if *rewrite {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("the way of a plan has changed; -rewrite stores it if that is meant:\n%s", &b)
	}
	if len(w.stays) > mostStays || w.returns > mostReturns {
		t.Errorf("a plan passes %d functions with %d returns between files, at most %d and %d are allowed", len(w.stays), w.returns, mostStays, mostReturns)
	}
	if !w.wrote {
		t.Error("the way does not lead to the write of a knob")
	}
}

// stay is one function on the way.
type stay struct{ file, name string }

// way reads a plan's way through the sources.
type way struct {
	info  types.Info
	of    map[types.Object]*ast.FuncDecl
	files map[*ast.FuncDecl]string

	stays   []stay
	in      string // the file that is read now
	left    map[string]bool
	returns int
	wrote   bool
}

// nothing imports every package as an empty one: only the types of this package matter.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

func readWay(t *testing.T) *way {
	t.Helper()
	w := &way{of: map[types.Object]*ast.FuncDecl{}, files: map[*ast.FuncDecl]string{}, left: map[string]bool{},
		info: types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, parsed := token.NewFileSet(), []*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	// Errors are of the packages that are not imported.
	c := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = c.Check("actuator", fset, parsed, &w.info)
	var start *ast.FuncDecl
	for i, f := range parsed {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				w.of[w.info.Defs[fn.Name]], w.files[fn] = fn, fset.File(parsed[i].Pos()).Name()
				if fn.Name.Name == "onPlan" {
					start = fn
				}
			}
		}
	}
	if start == nil {
		t.Fatal("there is no onPlan, at which a plan arrives")
	}
	w.read(start)
	return w
}

// read reads a function, and those that it passes the plan on to.
func (w *way) read(fn *ast.FuncDecl) {
	if s := (stay{w.files[fn], nameOf(fn)}); !slices.Contains(w.stays, s) {
		w.stays = append(w.stays, s)
		w.turn(s.file)
	} else {
		return
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || w.wrote {
			return !w.wrote
		}
		// Arguments are evaluated before the call.
		for _, a := range call.Args {
			ast.Inspect(a, func(n ast.Node) bool {
				if inner, ok := n.(*ast.CallExpr); ok {
					w.follow(fn, inner)
				}
				return !w.wrote
			})
		}
		w.follow(fn, call)
		return !w.wrote
	})
}

// follow reads the function that a call in fn names, if it takes the plan.
func (w *way) follow(fn *ast.FuncDecl, call *ast.CallExpr) {
	if w.wrote {
		return
	}
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return
	}
	next := w.of[w.info.Uses[name]]
	if writes(call) || next != nil && !takesPlan(next) && writes(next.Body) {
		w.turn(w.files[fn])
		w.wrote = true
		return
	}
	if next == nil || !takesPlan(next) || slices.Contains(w.stays, stay{w.files[next], nameOf(next)}) {
		return
	}
	w.turn(w.files[fn]) // the call stands in what is left of fn
	w.read(next)
}

// writes reports whether code has a call of a knob's Write.
func writes(code ast.Node) (found bool) {
	ast.Inspect(code, func(n ast.Node) bool {
		if f, ok := n.(*ast.SelectorExpr); ok && f.Sel.Name == "Write" {
			of, ok := f.X.(*ast.SelectorExpr)
			found = found || ok && of.Sel.Name == "Knob"
		}
		return !found
	})
	return found
}

// turn notes in which file reading goes on.
func (w *way) turn(file string) {
	if file == w.in {
		return
	}
	if w.left[file] {
		w.returns++
	}
	w.left[w.in], w.in = true, file
}

// takesPlan reports whether a function has a plan or a part of it as a parameter or a receiver.
func takesPlan(fn *ast.FuncDecl) bool {
	fields := slices.Clone(fn.Type.Params.List)
	if fn.Recv != nil {
		fields = append(fields, fn.Recv.List...)
	}
	return slices.ContainsFunc(fields, func(f *ast.Field) bool { return slices.Contains(carries(), types.ExprString(f.Type)) })
}

// nameOf returns the name of a function with its receiver's type.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*") + "." + fn.Name.Name
}
