package trimtab

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the code that CONTRIBUTING.md shows")

// declarations returns the text of the named declarations of a file, in the
// file's order, with their comments. A method is named by its name alone.
func declarations(t *testing.T, file string, names []string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, n := range names {
		left[n] = true
	}
	var parts []string
	for _, d := range f.Decls {
		name, doc := declared(d)
		if !left[name] {
			continue
		}
		delete(left, name)
		from := d.Pos()
		if doc != nil {
			from = doc.Pos()
		}
		parts = append(parts, string(text[fset.Position(from).Offset:fset.Position(d.End()).Offset]))
	}
	for name := range left {
		t.Errorf("%s declares no %s", file, name)
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// declared returns the name of a function or of the one type of a declaration.
func declared(d ast.Decl) (string, *ast.CommentGroup) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name, d.Doc
	case *ast.GenDecl:
		if ts, ok := d.Specs[0].(*ast.TypeSpec); ok {
			return ts.Name.Name, d.Doc
		}
	}
	return "", nil
}

// TestThePageShowsCodeThatIsTested holds the code of CONTRIBUTING.md against the
// examples, which are compiled, run, and held to the suites of their seams.
func TestThePageShowsCodeThatIsTested(t *testing.T) {
	const page = "CONTRIBUTING.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)<!-- code:(\\S+) ([^>]*?) -->\n+```go\n(.*?)```\n")
	if blocks, marked := strings.Count(string(b), "```go\n"), len(shown.FindAll(b, -1)); blocks != marked || marked < 4 {
		t.Errorf("%s: %d blocks of Go, of which %d say what they are from: want all, and at least 4", page, blocks, marked)
	}
	is := shown.ReplaceAllStringFunc(string(b), func(text string) string {
		m := shown.FindStringSubmatch(text)
		return fmt.Sprintf("<!-- code:%s %s -->\n\n```go\n%s```\n", m[1], m[2], declarations(t, m[1], strings.Fields(m[2])))
	})
	if is == string(b) {
		return
	}
	if !*update {
		t.Fatalf("%s shows code that is not in the examples any more: run `make generate`", page)
	}
	if err := os.WriteFile(page, []byte(is), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEveryTestThatContributingNamesIsThere(t *testing.T) {
	b, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^go test (\./\S+) -run '?([A-Za-z|]+)'?`).FindAllStringSubmatch(string(b), -1)
	if len(lines) < 4 {
		t.Errorf("%d commands, want one for each walk-through", len(lines))
	}
	for _, m := range lines {
		files, err := filepath.Glob(filepath.Join(m[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
		for name := range strings.SplitSeq(m[2], "|") {
			if !strings.Contains(text.String(), "func "+name) {
				t.Errorf("%s: no test of %s begins with %s", m[0], m[1], name)
			}
		}
	}
}

// link matches a link of Markdown.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// anchors returns the anchors of a page's headings, as GitHub makes them, and those that
// it sets itself.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$|<a id="([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(strings.ToLower(m[1]), "$1")
		text = regexp.MustCompile(`[^\pL\pN_\- ]`).ReplaceAllString(text, "")
		all[strings.ReplaceAll(text, " ", "-")], all[m[2]] = true, true
	}
	return all
}

func TestNoLinkOfAPageLeadsNowhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob("docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, records...), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			to, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			at := page
			if to != "" {
				at = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("%s: a link to %s, which is not there", page, to)
			} else if heading != "" && strings.HasSuffix(at, ".md") && !anchors(t, at)[heading] {
				t.Errorf("%s: a link to %s, which has no heading %s", page, at, heading)
			}
		}
	}
}
