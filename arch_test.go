package trimtab

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/trimtab/trimtab"

// archRule is one line of arch.txt.
type archRule struct {
	pattern         string
	pure            bool
	inside, outside []string
}

// readArch parses arch.txt; see its head for the form.
func readArch(t *testing.T) []archRule {
	t.Helper()
	text, err := os.ReadFile("arch.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rules []archRule
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var r archRule
		line, r.pure = strings.CutPrefix(line, "pure ")
		name, lists, ok := strings.Cut(line, ":")
		in, out, ok2 := strings.Cut(lists, "|")
		if !ok || !ok2 {
			t.Fatalf("arch.txt:%d: want `[pure] package: inside | outside`", n+1)
		}
		r.pattern = strings.TrimSpace(name)
		r.inside, r.outside = strings.Fields(in), strings.Fields(out)
		rules = append(rules, r)
	}
	return rules
}

// matches reports whether a package (named relative to the module, or "root")
// is meant by pattern: itself, "name/..." for the tree below and including
// name, "*" for all.
func matches(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pattern == "*" || pattern == pkg
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// ruleFor returns the most specific rule that matches: an exact one, else the
// longest tree.
func ruleFor(rules []archRule, pkg string) (best archRule, ok bool) {
	for _, r := range rules {
		if r.pattern == pkg {
			return r, true
		}
		if matches(r.pattern, pkg) && (!ok || len(r.pattern) > len(best.pattern)) {
			best, ok = r, true
		}
	}
	return best, ok
}

// sourceFile is one parsed file of the module.
type sourceFile struct {
	pkg, name string
	test      bool
	fset      *token.FileSet
	ast       *ast.File
}

// sources returns the files of the module.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// parsed parses the files once for all tests, without the go command, so that no cache of its
// can answer for them.
var parsed = sync.OnceValues(func() (files []sourceFile, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" || base == "dist") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(name))
		if pkg == "." {
			pkg = "root"
		}
		files = append(files, sourceFile{pkg, name, strings.HasSuffix(name, "_test.go"), fset, f})
		return nil
	})
	return files, err
})

func imports(f *ast.File) []string {
	var out []string
	for _, s := range f.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		out = append(out, p)
	}
	return out
}

func TestNoPackageImportsWhatArchTxtDoesNotAllow(t *testing.T) {
	rules := readArch(t)
	for _, f := range sources(t) {
		r, ok := ruleFor(rules, f.pkg)
		if !ok {
			t.Errorf("%s: package %s has no line in arch.txt", f.name, f.pkg)
			continue
		}
		for _, imp := range imports(f.ast) {
			first, _, _ := strings.Cut(imp, "/")
			switch {
			case imp == modulePath || strings.HasPrefix(imp, modulePath+"/"):
				to := strings.TrimPrefix(strings.TrimPrefix(imp, modulePath), "/")
				if to == "" {
					to = "root"
				}
				conformance := f.test && strings.HasSuffix(path.Base(to), "test")
				if to != f.pkg && !conformance && !f.test && !matchesAny(r.inside, to) {
					t.Errorf("%s: %s may not import %s (arch.txt)", f.name, f.pkg, to)
				}
				if stageOf(f.pkg) != "" && stageOf(to) != "" && stageOf(f.pkg) != stageOf(to) {
					t.Errorf("%s: stage %s imports stage %s", f.name, stageOf(f.pkg), stageOf(to))
				}
			case strings.Contains(first, ".") && !f.test:
				if !slices.ContainsFunc(r.outside, func(p string) bool { return p == "*" || imp == p || strings.HasPrefix(imp, p+"/") }) {
					t.Errorf("%s: %s may not use %s (arch.txt)", f.name, f.pkg, imp)
				}
			}
		}
	}
}

func TestNothingOutsideTheLaboratoryUsesIt(t *testing.T) {
	for _, f := range sources(t) {
		if matchesAny([]string{"lab/...", "cmd/trimtab-lab"}, f.pkg) {
			continue
		}
		for _, imp := range imports(f.ast) {
			if strings.HasPrefix(imp, modulePath+"/lab/") {
				t.Errorf("%s: imports %s: only lab/ and cmd/trimtab-lab may", f.name, imp)
			}
		}
	}
}

// stageOf returns the stage that a package belongs to, or "".
func stageOf(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	if slices.Contains([]string{"collector", "analyzer", "planner", "actuator", "exporters", "console"}, first) {
		return first
	}
	return ""
}

// What a pure package may not do, by import path and by selector.
var (
	errImpureImport   = regexp.MustCompile(`^(os|net|log|syscall|runtime|sync|context|plugin|unsafe|math/rand|io/fs|io/ioutil|testing)(/|$)`)
	errImpureSelector = regexp.MustCompile(`^(time\.(Now|Since|Until|After|AfterFunc|Tick|Sleep|NewTimer|NewTicker)|rand\.([A-Z][a-z]*N?|Perm|Shuffle))$`)
	errPureRand       = regexp.MustCompile(`^rand\.(New[A-Za-z0-9]*|Rand|Source|PCG|ChaCha8|Zipf)$`)
)

func TestPurePackagesKnowNoClockNoIOAndNoGlobalRandomness(t *testing.T) {
	rules := readArch(t)
	for _, f := range sources(t) {
		r, ok := ruleFor(rules, f.pkg)
		// A conformance suite (learntest, …) is test code in a package of its own.
		if !ok || !r.pure || f.test || strings.HasSuffix(f.pkg, "test") {
			continue
		}
		for _, imp := range imports(f.ast) {
			if errImpureImport.MatchString(imp) && imp != "math/rand/v2" {
				t.Errorf("%s: pure package imports %s", f.name, imp)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			at := func() string { return f.fset.Position(n.Pos()).String() }
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: pure package starts a goroutine", at())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					s := x.Name + "." + n.Sel.Name
					if errImpureSelector.MatchString(s) && !errPureRand.MatchString(s) {
						t.Errorf("%s: pure package uses %s", at(), s)
					}
				}
			}
			return true
		})
	}
}

func TestPackageVariablesAreErrorsOrEmbeddedFiles(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: has an init function", f.name)
			}
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			embedded := g.Doc != nil && strings.Contains(rawText(g.Doc), "//go:embed")
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for _, name := range v.Names {
					isError := strings.HasPrefix(strings.ToLower(name.Name), "err")
					if !isError && !embedded && name.Name != "_" {
						t.Errorf("%s: package variable %s", f.fset.Position(name.Pos()), name.Name)
					}
				}
			}
		}
	}
}

// rawText includes directives, which CommentGroup.Text drops.
func rawText(c *ast.CommentGroup) string {
	var b strings.Builder
	for _, l := range c.List {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

func TestEveryPackageHasExactlyOnePackageComment(t *testing.T) {
	has := map[string][]string{}
	packages := map[string]bool{}
	for _, f := range sources(t) {
		if f.test || strings.HasSuffix(f.ast.Name.Name, "_test") {
			continue
		}
		packages[f.pkg] = true
		if f.ast.Doc != nil {
			has[f.pkg] = append(has[f.pkg], f.name)
		}
	}
	for pkg := range packages {
		if n := len(has[pkg]); n != 1 {
			t.Errorf("package %s has %d package comments %v, want 1", pkg, n, has[pkg])
		}
	}
}

func TestErrorsAreWrapped(t *testing.T) {
	files := sources(t)
	helpers := errorHelpers(files)
	for _, f := range files {
		if f.test || strings.HasSuffix(f.pkg, "test") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 || !helpers[calledName(call)] {
				return true
			}
			format, ok := formatOf(call)
			if ok && losesError(format, call.Args[len(call.Args)-1]) {
				t.Errorf("%s: error is printed, not wrapped: %s", f.fset.Position(call.Pos()), format)
			}
			if ok && strings.Contains(format, "failed to") {
				t.Errorf("%s: write `verb object: cause`, not %s", f.fset.Position(call.Pos()), format)
			}
			return true
		})
	}
}

// errorHelpers returns the names of the functions that make an error of a
// format: fmt.Errorf, and every function of the module that takes
// (..., format string, args ...any) and returns an error.
func errorHelpers(files []sourceFile) map[string]bool {
	names := map[string]bool{"Errorf": true}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.test || fn.Type.Results == nil || len(fn.Type.Params.List) == 0 {
				continue
			}
			params, results := fn.Type.Params.List, fn.Type.Results.List
			_, variadic := params[len(params)-1].Type.(*ast.Ellipsis)
			last, ok := results[len(results)-1].Type.(*ast.Ident)
			if variadic && ok && last.Name == "error" && strings.HasSuffix(fn.Name.Name, "f") {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// calledName returns the name of the function or method that is called.
func calledName(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		return fn.Sel.Name
	case *ast.Ident:
		return fn.Name
	}
	return ""
}

// formatOf returns the first argument that is a text with a verb in it.
func formatOf(call *ast.CallExpr) (string, bool) {
	for _, a := range call.Args {
		if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, "%") {
			return lit.Value, true
		}
	}
	return "", false
}

// losesError reports whether the last argument is an error, or its text, that a
// format prints without wrapping it.
func losesError(format string, last ast.Expr) bool {
	if regexp.MustCompile(`%w["\x60]?$`).MatchString(format) || !regexp.MustCompile(`%[vs]["\x60]?$`).MatchString(format) {
		return false
	}
	if call, ok := last.(*ast.CallExpr); ok {
		sel, ok := call.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Error" && len(call.Args) == 0
	}
	name, ok := last.(*ast.Ident)
	return ok && regexp.MustCompile(`^(err|.*[a-z]Err|cause)$`).MatchString(name.Name)
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", f.fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil && ts.Comment == nil {
						t.Errorf("%s: %s has no comment", f.fset.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	if s, ok := typ.(*ast.StarExpr); ok {
		typ = s.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func TestTheTypedClientsetOfKubernetesIsNoPartOfTheBinary(t *testing.T) {
	heavy := []string{"k8s.io/client-go/kubernetes/...", "k8s.io/client-go/informers/...", "k8s.io/client-go/dynamic/dynamicinformer/...", "sigs.k8s.io/controller-runtime/..."}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/trimtab").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	if !slices.Contains(all, "k8s.io/client-go/dynamic") {
		t.Error("the binary has no client of Kubernetes: what is looked for has moved")
	}
	for _, path := range all {
		if matchesAny(heavy, path) {
			t.Errorf("the binary has %s, which makes it 20 MB larger", path)
		}
	}
}
