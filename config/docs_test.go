package config_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/collector/sources"
	"github.com/trimtab/trimtab/config"
)

// TestTheManualIsPrintedFromTheFields: docs/config.md is made of the types'
// own comments and defaults. Rewrite it with: go test ./config -run Manual -update
func TestTheManualIsPrintedFromTheFields(t *testing.T) {
	const name = "../docs/config.md"
	got := manual(t)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the fields say (-file +fields)\n%s", name, diff)
	}
}

func manual(t *testing.T) string {
	t.Helper()
	example, err := os.ReadFile("testdata/good/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := writer{t: t, comments: map[string]string{}}
	for _, name := range []string{"config.go", "workload.go", "beside_jobs.go", "beside_tasks.go", "beside_manager.go", "fast.go", "kubernetes.go", "replicas.go", "concurrency.go", "rate.go", "runtime.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(m.comments, fieldComments(file))
	}
	m.WriteString("# The configuration file\n\n" +
		"<!-- Printed from the package config: go test ./config -run Manual -update -->\n\n" +
		"One YAML file, checked with `trimtab check config FILE`: every mistake is answered with\n" +
		"file:line:col and a hint, all of them at once. Without a file trimtab listens on loopback,\n" +
		"finds services in the spans that it gets, and turns nothing. SIGHUP and `/-/reload` read it\n" +
		"again and keep the old one when the new one has a mistake. Durations have units (`200ms`,\n" +
		"`30s`, `1h30m`), sizes too (`64MiB`). Names of certificates and secrets are relative to the\n" +
		"file. Anchors, aliases, tags and a second document are refused.\n\n" +
		"An example:\n\n```yaml\n" + string(example) + "```\n")
	m.section("", reflect.ValueOf(*config.Default()))
	m.sources()
	m.WriteString("\n## $match in PromQL\n\n" +
		"`$match` stands for the labels under `match.prometheus`, quoted: with `{namespace: shop}`,\n" +
		"`http_requests_total{$match,code=\"200\"}` asks for `http_requests_total{namespace=\"shop\",code=\"200\"}`.\n\n" +
		"## Utility\n\n" +
		"An expression may use `p` (performance), `slo` and `m` = min(1, p/slo), the operators\n" +
		"`+ - * / % ** < <= > >= == != && || ?:`, and the functions min, max, abs, sqrt, exp, log. It is\n" +
		"clamped to [0, 1] and must be a number for every p and never fall as p grows.\n")
	return m.String()
}

// sources prints the table of what is polled on a host.
func (w *writer) sources() {
	w.WriteString("\n## Sources of samples\n\nWhat an agent polls on its host. A host that lacks one says so, with what to do, behind `monitors` on\n" +
		"the pipeline page and in the log. Of these quantities no estimate is made.\n\n" +
		"| source | is read | tells | quantities |\n|---|---|---|---|\n")
	for _, s := range sources.All() {
		when := "with `measure." + s.Key + "`"
		switch {
		case s.Check != nil:
			when = "with `measure.sources." + s.Name + "`"
		case s.Key == "":
			when = "always"
		}
		if s.Grouped {
			when += ", where a workload has a cgroup"
		}
		var all []string
		for _, q := range s.Quantities {
			all = append(all, "`"+string(q)+"`")
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", s.Name, when, s.About, strings.Join(all, ", "))
	}
}

// writer prints tables, one per struct.
type writer struct {
	strings.Builder
	t        *testing.T
	comments map[string]string
}

// section prints the fields of v, and then those of the structs in it.
func (w *writer) section(path string, v reflect.Value) {
	if path == "" {
		w.WriteString("\n## Top of the file\n\n")
	} else {
		fmt.Fprintf(w, "\n## %s\n\n", path)
	}
	w.WriteString("| key | default | meaning |\n|---|---|---|\n")
	var inner []func()
	w.rows(path, v, &inner)
	for _, f := range inner {
		f()
	}
}

// rows prints a row for each field of v, those of structs that are inlined among them.
func (w *writer) rows(path string, v reflect.Value, inner *[]func()) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Type.Kind() == reflect.Struct && options == "inline" && f.Type.PkgPath() == v.Type().PkgPath() {
			w.rows(path, v.Field(i), inner)
			continue
		}
		if key == "-" || options == "inline" {
			continue
		}
		comment := w.comments[v.Type().Name()+"."+f.Name]
		if comment == "" {
			w.t.Errorf("%s.%s has no comment", v.Type().Name(), f.Name)
		}
		below := strings.TrimPrefix(path+"."+key, ".")
		def := fmt.Sprint(v.Field(i).Interface())
		next := v.Field(i)
		switch {
		case next.Kind() == reflect.Slice && next.Type().Elem().Kind() == reflect.Struct:
			next, below = reflect.New(next.Type().Elem()).Elem(), below+"[]"
		case next.Kind() == reflect.Pointer:
			next = reflect.New(next.Type().Elem()).Elem()
		}
		if next.Kind() == reflect.Struct {
			def = "see below"
			*inner = append(*inner, func() { w.section(below, next) })
		} else if v.Field(i).IsZero() || path == "pool" && key != "name" {
			def = ""
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", key, def, strings.ReplaceAll(comment, "|", "\\|"))
	}
}

// fieldComments returns the comment of every field as "Type.Field".
func fieldComments(file *ast.File) map[string]string {
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return true
	})
	return comments
}
