//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestOneBinaryGrowsByAtMost6MBWithKubernetesAndHelpByAtMost10ms builds trimtab as a release
// is built, once as it is and once with an internal/kube whose functions have no bodies, so
// that nothing of client-go is linked. That package alone imports it (arch.txt).
func TestOneBinaryGrowsByAtMost6MBWithKubernetesAndHelpByAtMost10ms(t *testing.T) {
	dir := t.TempDir()
	with, without := filepath.Join(dir, "with"), filepath.Join(dir, "without")
	builds(t, with)
	builds(t, without, "-overlay="+hollow(t, "../../internal/kube", dir))
	if out, err := exec.Command("go", "version", "-m", without).CombinedOutput(); err != nil || bytes.Contains(out, []byte("k8s.io/client-go")) {
		t.Fatalf("the one without has client-go, or cannot be read: %v", err)
	}
	size := func(file string) float64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return float64(info.Size()) / 1e6
	}
	t.Logf("%.2f MB with Kubernetes, %.2f MB without: %.2f MB more", size(with), size(without), size(with)-size(without))
	if more := size(with) - size(without); more > 6 {
		t.Errorf("it grows by %.2f MB, at most 6 are allowed", more)
	}
	t.Logf("packages of Kubernetes begin in %.2f ms of the %.2f ms of all", inits(t, with, "k8s.io"), inits(t, with, ""))
}

func builds(t *testing.T, binary string, flags ...string) {
	t.Helper()
	args := append(append([]string{"build", "-trimpath", "-ldflags=-s -w"}, flags...), "-o", binary, ".")
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

// inits is how many ms the packages of a module, "" of all, take to begin in the quickest
// of ten runs of --help.
func inits(t *testing.T, binary, module string) float64 {
	t.Helper()
	line := regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, (\S+) ms clock`)
	var sums []float64
	for range 10 {
		c := exec.Command(binary, "--help")
		c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		sum := 0.0
		for _, m := range line.FindAllSubmatch(out, -1) {
			if v, err := strconv.ParseFloat(string(m[2]), 64); err == nil && strings.Contains(string(m[1]), module) {
				sum += v
			}
		}
		sums = append(sums, sum)
	}
	return slices.Min(sums)
}

// hollow writes the package without bodies, and returns the overlay that puts it in place.
func hollow(t *testing.T, pkg, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		at, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		replace[at] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(replace[at], hollowed(t, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// hollowed is a file whose functions panic, and in which nothing of Kubernetes is named.
func hollowed(t *testing.T, name string) []byte {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{} // what an import is called
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		called := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			called = i.Name.Name
		}
		of[called] = path
	}
	foreign := func(n ast.Node) (is bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && (strings.Contains(of[x.Name], "k8s.io") || strings.Contains(of[x.Name], "go-logr")) {
					is = true
				}
			}
			return !is
		})
		return is
	}
	var decls []ast.Decl
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if foreign(d.Type) || d.Recv != nil && foreign(d.Recv) {
				continue
			}
			d.Body = &ast.BlockStmt{List: []ast.Stmt{&ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent("panic"), Args: []ast.Expr{&ast.BasicLit{Kind: token.STRING, Value: `"hollow"`}}}}}}
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.StructType); ok {
					s.Fields.List = slices.DeleteFunc(s.Fields.List, func(f *ast.Field) bool { return foreign(f.Type) })
				}
				return true
			})
			if d.Tok != token.IMPORT && foreign(d) {
				continue
			}
		}
		decls = append(decls, d)
	}
	f.Decls = decls
	used := map[string]bool{}
	for _, d := range decls {
		ast.Inspect(d, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					used[x.Name] = true
				}
			}
			return true
		})
	}
	for _, d := range decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			g.Specs = slices.DeleteFunc(g.Specs, func(s ast.Spec) bool {
				i := s.(*ast.ImportSpec)
				path, _ := strconv.Unquote(i.Path.Value)
				called := path[strings.LastIndexByte(path, '/')+1:]
				if i.Name != nil {
					called = i.Name.Name
				}
				return !used[called]
			})
			g.Lparen = 1 // several, or none
		}
	}
	var b bytes.Buffer
	if err := format.Node(&b, set, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
