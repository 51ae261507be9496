package rulefile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/prometheus/common/model"

	"github.com/trimtab/trimtab/dashboards"
	"github.com/trimtab/trimtab/internal/metric"
)

// MaxBytes bounds a file.
const MaxBytes = 512 << 10

// File is one file of rules.
type File struct {
	// Name only stands in messages.
	Name string
	Data []byte
}

// Problem is one mistake. Line and Col count from 1; Col counts characters.
type Problem struct {
	File      string
	Line, Col int
	Message   string
	// Hint is what to write instead, or empty.
	Hint string
}

// Error prints "file:line:col: message".
func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
}

// rules is a file as Prometheus reads it.
type rules struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name                    string            `yaml:"name"`
	Interval                string            `yaml:"interval"`
	QueryOffset             string            `yaml:"query_offset"`
	Limit                   int               `yaml:"limit"`
	Labels                  map[string]string `yaml:"labels"`
	PartialResponseStrategy string            `yaml:"partial_response_strategy"`
	Rules                   []rule            `yaml:"rules"`
}

type rule struct {
	Record        string            `yaml:"record"`
	Alert         string            `yaml:"alert"`
	Expr          string            `yaml:"expr"`
	For           string            `yaml:"for"`
	KeepFiringFor string            `yaml:"keep_firing_for"`
	Labels        map[string]string `yaml:"labels"`
	Annotations   map[string]string `yaml:"annotations"`
}

// Check returns the mistakes in the files, by file and line, and how many rules the files have. A
// file may use what another records.
func Check(files []File) (count int, problems []*Problem) {
	c := checker{known: Known()}
	var read []*checked
	for _, f := range files {
		r := c.read(f)
		read = append(read, r)
		for _, g := range r.rules.Groups {
			count += len(g.Rules)
			for _, x := range g.Rules {
				if x.Record != "" {
					c.known = append(c.known, x.Record)
				}
			}
		}
	}
	for _, r := range read {
		c.check(r)
		slices.SortStableFunc(r.problems, func(a, b *Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col)) })
		problems = append(problems, r.problems...)
	}
	return count, problems
}

// Known returns every name that a rule may use of trimtab.
func Known() []string {
	names := append(dashboards.Recorded(), "trimtab_build_info")
	for _, r := range metric.Table() {
		if r.Type == metric.Histogram {
			names = append(names, r.Name+"_bucket", r.Name+"_sum", r.Name+"_count")
			continue
		}
		names = append(names, r.Name)
	}
	return names
}

// checker knows the names.
type checker struct {
	known []string
}

// checked is one file that was read.
type checked struct {
	File
	rules    rules
	doc      ast.Node
	lines    []string
	problems []*Problem
}

func (r *checked) add(line, col int, hint, format string, args ...any) {
	r.problems = append(r.problems, &Problem{r.Name, max(1, line), max(1, col), fmt.Sprintf(format, args...), hint})
}

// read decodes a file; what cannot be read is a problem, not a panic.
func (c *checker) read(f File) (r *checked) {
	r = &checked{File: f, lines: strings.Split(string(f.Data), "\n")}
	defer func() {
		if p := recover(); p != nil {
			r.rules = rules{}
			r.add(1, 1, "", "the YAML cannot be read: %v", p)
		}
	}()
	if len(f.Data) > MaxBytes {
		r.add(1, 1, "", "the file has more than %d bytes", MaxBytes)
		return r
	}
	if !utf8.Valid(f.Data) {
		r.add(1, 1, "", "the file is not UTF-8")
		return r
	}
	tokens := lexer.Tokenize(string(f.Data))
	if t, why := new(bounds).refuses(tokens); t != nil {
		r.add(t.Position.Line, t.Position.Column, "", "%s", why)
		return r
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		r.broken(err)
		return r
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		r.add(1, 1, "", "want one document, with groups of rules")
		return r
	}
	r.doc = tree.Docs[0].Body
	if err := yaml.NewDecoder(bytes.NewReader(f.Data), yaml.Strict()).Decode(&r.rules); err != nil && !errors.Is(err, io.EOF) {
		r.rules = rules{}
		r.broken(err)
	}
	return r
}

// broken adds an error of the YAML reader with its position.
func (r *checked) broken(err error) {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		at := e.GetToken().Position
		hint := ""
		if word, ok := strings.CutPrefix(e.GetMessage(), "unknown field "); ok {
			hint = nearest(strings.Trim(word, `"`), keys())
		}
		r.add(at.Line, at.Column, hint, "%s", e.GetMessage())
		return
	}
	r.add(1, 1, "", "%s", err)
}

func keys() []string {
	return []string{"groups", "name", "interval", "query_offset", "limit", "labels", "partial_response_strategy", "rules",
		"record", "alert", "expr", "for", "keep_firing_for", "annotations"}
}

func (c *checker) check(r *checked) {
	if r.doc == nil || len(r.problems) > 0 {
		return
	}
	if len(r.rules.Groups) == 0 {
		r.add(1, 1, "", "no groups: nothing would be evaluated")
	}
	for i, g := range r.rules.Groups {
		at := fmt.Sprintf("$.groups[%d]", i)
		if g.Name == "" {
			r.at(at, "", "a group without a name")
		}
		r.duration(at+".interval", g.Interval)
		r.duration(at+".query_offset", g.QueryOffset)
		for j := range g.Rules {
			c.rule(r, fmt.Sprintf("%s.rules[%d]", at, j), &g.Rules[j])
		}
	}
}

func (c *checker) rule(r *checked, at string, x *rule) {
	switch {
	case (x.Record == "") == (x.Alert == ""):
		r.at(at, "", "a rule needs either record or alert")
	case x.Record != "" && !model.LegacyValidation.IsValidMetricName(x.Record):
		r.at(at+".record", "", "%q is no name of a series", x.Record)
	case x.Record != "" && (x.For != "" || x.KeepFiringFor != "" || len(x.Annotations) > 0):
		r.at(at, "", "%s records: for, keep_firing_for and annotations belong to alerts", x.Record)
	}
	r.duration(at+".for", x.For)
	r.duration(at+".keep_firing_for", x.KeepFiringFor)
	if strings.TrimSpace(x.Expr) == "" {
		r.at(at, "", "a rule without expr")
		return
	}
	names, err := dashboards.Metrics(x.Expr)
	if err != nil {
		r.at(at+".expr", "", "expr: %v", err)
	}
	for _, name := range names {
		if !slices.Contains(c.known, name) {
			c.unknown(r, at+".expr", name)
		}
	}
}

// unknown reports an unknown name at its position in the expression.
func (c *checker) unknown(r *checked, at, name string) {
	hint := nearest(name, c.known)
	message := "trimtab has no metric " + name
	if slices.Contains(c.known, name+"_bucket") {
		message, hint = name+" is a histogram", name+"_bucket, "+name+"_sum or "+name+"_count"
	}
	line, col := r.place(at)
	for i := line - 1; i < len(r.lines); i++ {
		if from := wordAt(r.lines[i], name); from >= 0 {
			line, col = i+1, utf8.RuneCountInString(r.lines[i][:from])+1
			break
		}
	}
	r.add(line, col, hint, "%s", message)
}

// wordAt returns the position of name in line as a whole word, or -1.
func wordAt(line, name string) int {
	part := func(c byte) bool {
		return c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for from := 0; ; {
		i := strings.Index(line[from:], name)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(name)
		if (i == 0 || !part(line[i-1])) && (end == len(line) || !part(line[end])) {
			return i
		}
		from = end
	}
}

func (r *checked) duration(at, text string) {
	if text == "" {
		return
	}
	if _, err := model.ParseDuration(text); err != nil {
		r.at(at, "30s, 5m, 1h", "%q is no duration", text)
	}
}

func (r *checked) at(path, hint, format string, args ...any) {
	line, col := r.place(path)
	r.add(line, col, hint, format, args...)
}

// place returns the position of the value at path.
func (r *checked) place(path string) (line, col int) {
	p, err := yaml.PathString(path)
	if err != nil {
		return 1, 1
	}
	node, err := p.FilterNode(r.doc)
	if err != nil || node == nil || node.GetToken() == nil {
		return 1, 1
	}
	at := node.GetToken().Position
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		at = m.Values[0].Key.GetToken().Position
	}
	return at.Line, at.Column
}
