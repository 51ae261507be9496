package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxBytes bounds a file: 10,000 workloads of 400 bytes each.
	MaxBytes = 4 << 20
	// MaxDepth bounds the nesting of a file.
	MaxDepth = 32
	// MaxKeys bounds the keys side by side, since the parser's time grows with
	// their square.
	MaxKeys = 1000
)

// Load reads and validates the file at path. File names inside it that are
// secrets, certificates or profiles are relative to its directory. The error is
// [Errors], or that of reading the file.
func Load(path string) (*Config, error) {
	c, _, err := load(path, nil, nil)
	return c, err
}

// LoadWith is [Load], and reads objectives that are objects of a cluster, and the workloads of whole
// namespaces; nil: they are left out, with a warning each. A workload without its objective has no
// target.
func LoadWith(path string, objects Objects, members Members) (*Config, error) {
	c, _, err := load(path, objects, members)
	return c, err
}

func load(path string, objects Objects, members Members) (*Config, *decoder, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	c, d, err := parse(path, data, sourcesBeside(path, objects, members))
	if err != nil {
		return nil, nil, err
	}
	c.setDirectory(filepath.Dir(path))
	return c, d, nil
}

// sourcesBeside reads files relative to the directory of path.
func sourcesBeside(path string, objects Objects, members Members) sources {
	dir := filepath.Dir(path)
	return sources{objects: objects, members: members,
		file:   func(name string) ([]byte, error) { return readBounded(absolute(dir, name)) },
		beside: func(name string) []ObjectiveFile { return filesBeside(absolute(dir, name)) },
	}
}

// absolute is the name of a file as it is relative to a directory.
func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

const (
	// maxBeside and maxBesideBytes bound the files beside one that are looked into.
	maxBeside      = 200
	maxBesideBytes = 8 << 20
)

// filesBeside are the other YAML and JSON files in the directory of one, as far as they can
// be read.
func filesBeside(name string) (all []ObjectiveFile) {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return nil
	}
	size := 0
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(name), e.Name())
		info, err := os.Stat(path)
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		if err != nil || !info.Mode().IsRegular() || path == name || info.Size() > MaxBytes || size+int(info.Size()) > maxBesideBytes || len(all) == maxBeside {
			continue
		}
		if data, err := readBounded(path); err == nil {
			size += len(data)
			all = append(all, ObjectiveFile{Name: path, Data: data, Beside: true})
		}
	}
	return all
}

// readBounded reads a file, and a byte more than is accepted of a large one.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// setDirectory makes the names of side files absolute from dir.
func (c *Config) setDirectory(dir string) {
	c.Prometheus.HTTP.SetDirectory(dir)
	names := []*string{
		&c.NATS.CredentialsFile, &c.NATS.TokenFile,
		&c.NATS.TLS.CAFile, &c.NATS.TLS.CertFile, &c.NATS.TLS.KeyFile,
		&c.Exporters.KEDA.TLS.CAFile, &c.Exporters.KEDA.TLS.CertFile, &c.Exporters.KEDA.TLS.KeyFile,
		&c.Exporters.OTLP.TLS.CAFile, &c.Exporters.OTLP.TLS.CertFile, &c.Exporters.OTLP.TLS.KeyFile,
		&c.OTLP.TLS.CAFile, &c.OTLP.TLS.CertFile, &c.OTLP.TLS.KeyFile, &c.Web.ConfigFile, &c.Alertmanager.TokenFile,
	}
	for i := range c.Workloads {
		names = append(names, &c.Workloads[i].Fallback.Profile)
	}
	for _, name := range names {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(dir, *name)
		}
	}
}

// Parse reads and validates data; filename is only for messages. The
// error is [Errors]. It never panics and reads no file, so slo.file is a mistake here.
func Parse(filename string, data []byte) (*Config, error) {
	c, _, err := parse(filename, data, sources{})
	return c, err
}

func newDecoder(filename string) *decoder {
	return &decoder{file: filename, at: map[string]position{}, keyAt: map[string]position{}, texts: map[string]ast.Node{}, meant: map[string]bool{}}
}

// sources are where what a file names is read; nil: it is not.
type sources struct {
	file    func(name string) ([]byte, error)
	beside  func(name string) []ObjectiveFile
	objects Objects
	members Members
}

// parse reads data, and through from the files and objects that data includes by name.
func parse(filename string, data []byte, from sources) (*Config, *decoder, error) {
	d := newDecoder(filename)
	root := d.read(data)
	if len(d.errs) > 0 {
		return nil, nil, d.errs.ordered()
	}
	v := validator{decoder: d, config: zero(), from: from}
	d.value("", root, reflect.ValueOf(v.config).Elem())
	n := namespaces{validator: &v}
	if n.expand(root) {
		d, v.config.Workloads = newDecoder(filename), nil
		v.decoder = d
		d.value("", root, reflect.ValueOf(v.config).Elem())
	}
	n.become()
	c := v.config
	if c.Objective == EndToEnd && !d.has("planning.move_cost") {
		c.Planning.MoveCost = endToEndMoveCost
	}
	for i := range c.Workloads {
		c.Workloads[i].Knob.fold()
	}
	v.run()
	n.end()
	d.replaced()
	if len(d.errs) > 0 {
		return nil, nil, d.errs.ordered()
	}
	c.Warnings = append(v.warnings, d.notes...).ordered()
	return c, d, nil
}

// read parses data into the one mapping of a file, or reports why it cannot.
func (d *decoder) read(data []byte) ast.Node {
	start := position{1, 1}
	if len(data) > MaxBytes {
		d.report(start, fmt.Sprintf("the file is larger than %d bytes", MaxBytes), "split the workloads over several pools, each with its own file")
		return nil
	}
	if at, message, hint := unreadable(data, false); message != "" {
		d.report(at, message, hint)
		return nil
	}
	file := d.parse(string(bytes.TrimPrefix(data, []byte("\ufeff"))))
	if file == nil {
		return nil
	}
	var docs []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			docs = append(docs, doc.Body)
		}
	}
	switch {
	case len(docs) == 0:
		d.report(start, "the file is empty", "start without --config.file for the defaults, or write at least: workloads: []")
		return nil
	case len(docs) > 1:
		d.report(positionOf(docs[1]), "a second document begins here", "one file holds one document: remove the line ---")
		return nil
	}
	if fields(docs[0]) == nil {
		d.report(positionOf(docs[0]), "the file holds "+describe(docs[0])+", not keys and values", "begin with a key, as in: pool: {cpu: 8}")
		return nil
	}
	return docs[0]
}

// unreadable finds bytes that no YAML file of ours holds; in one of others, texts may have
// any quote and, in blocks, tabs.
func unreadable(data []byte, foreign bool) (at position, message, hint string) {
	line, col := 1, 1
	indent, comment, before := true, false, '\n' // before is the last that is no space
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return position{line, col}, "this byte is not UTF-8", "save the file as UTF-8"
		case r == '\t' && indent && !foreign:
			return position{line, col}, "a tab indents this line", "indent with spaces: YAML forbids tabs"
		case !foreign && !comment && strings.ContainsRune("“”‘’", r) && strings.ContainsRune("\n:-,[{", before):
			return position{line, col}, fmt.Sprintf("typographic quote %c", r), "write \" or ', or no quotes at all"
		case (r < ' ' && r != '\n' && r != '\r' && r != '\t') || r == 0x7f:
			return position{line, col}, fmt.Sprintf("control character %U", r), "remove it; the file must be plain text"
		}
		comment = comment || r == '#' && (i == 0 || data[i-1] == ' ' || data[i-1] == '\n')
		i, col = i+size, col+1
		indent = indent && r == ' '
		if r != ' ' {
			before = r
		}
		if r == '\n' {
			line, col, indent, comment = line+1, 1, true, false
		}
	}
	return position{}, "", ""
}

// parse checks the tokens for what the parser must not see, and parses.
func (d *decoder) parse(text string) (file *ast.File) {
	defer func() { // the parser is not ours: a panic in it is a mistake in the file
		if r := recover(); r != nil {
			d.report(position{1, 1}, "the file cannot be read as YAML", "check brackets, quotes and indentation")
			file = nil
		}
	}()
	tokens := lexer.Tokenize(text)
	if whole := withoutEmpty(text, tokens); whole != text {
		tokens = lexer.Tokenize(whole)
	}
	if !d.acceptable(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}
	at, message := position{1, 1}, "YAML: the file cannot be read"
	var y yaml.Error
	if errors.As(err, &y) {
		message = "YAML: " + firstLine(y.GetMessage())
		if t := y.GetToken(); t != nil && t.Position != nil {
			at = position{t.Position.Line, t.Position.Column}
		}
	}
	hint := "check brackets, quotes and indentation here and in the line before; a value with brackets, braces or commas needs quotes"
	lines := strings.Split(text, "\n")
	line := lines[min(at.line, len(lines))-1]
	switch {
	case strings.Contains(line, "${"):
		hint = "write the value itself: no variables are replaced in this file"
	case d.others && strings.Contains(line, "{{"):
		hint = "this is a template: name what comes of it, as helm template prints it"
	case d.others && strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t"):
		message, hint = "a tab indents this line", "indent with spaces: YAML forbids tabs"
	}
	d.report(at, message, hint)
	return nil
}

// withoutEmpty blanks the line --- of each document that has nothing in it, since the parser
// leaves out all that follows one.
func withoutEmpty(text string, tokens token.Tokens) string {
	var empty []int // lines
	header := -1
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
		case token.DocumentHeaderType:
			if header >= 0 {
				empty = append(empty, header)
			}
			header = t.Position.Line
		default:
			header = -1
		}
	}
	if len(empty) == 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for _, at := range empty {
		if at <= len(lines) {
			lines[at-1] = strings.Replace(lines[at-1], "---", "   ", 1)
		}
	}
	return strings.Join(lines, "")
}

// acceptable refuses what we do not read (anchors, tags, …) and nesting that
// would exhaust the parser's stack.
func (d *decoder) acceptable(tokens token.Tokens) bool {
	depth, line, entries := 0, 0, 0
	keys := siblings{}
	for i, t := range tokens {
		at := position{t.Position.Line, t.Position.Column}
		if at.line != line {
			line, entries = at.line, 0
		}
		kind := t.Type
		if d.others {
			kind = plainOf(kind)
		}
		switch kind {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			d.report(at, "anchors, aliases and merges are not supported", "write the value out where it is used")
		case token.TagType:
			d.report(at, "tags are not supported", "remove the tag; quote the value if it must be a text")
		case token.DirectiveType:
			d.report(at, "directives are not supported", "remove the line")
		case token.MappingKeyType:
			d.report(at, "keys that begin with ? are not supported", "write key: value")
		case token.DocumentHeaderType:
			keys = siblings{}
		case token.SequenceStartType, token.MappingStartType:
			depth++
			keys.flow = append(keys.flow, 0)
		case token.SequenceEndType, token.MappingEndType:
			depth--
			keys.flow = keys.flow[:max(0, len(keys.flow)-1)]
		case token.SequenceEntryType:
			entries++
			keys.entry(at.col)
		case token.MappingValueType:
			if i > 0 && keys.key(tokens[i-1].Position.Column, depth > 0) > MaxKeys {
				d.report(at, fmt.Sprintf("more than %d keys side by side", MaxKeys), "no section has that many: check the indentation")
				return false
			}
		}
		if most := d.depth(); depth > most || entries > most {
			d.report(at, fmt.Sprintf("nested deeper than %d levels", d.depth()), "no setting needs that: check brackets and dashes")
			return false
		}
		if len(d.errs) > 20 {
			return false
		}
	}
	return len(d.errs) == 0
}

// plainOf is UnknownType for what our own files may not have and others' may.
func plainOf(t token.Type) token.Type {
	switch t {
	case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.DirectiveType, token.MappingKeyType:
		return token.UnknownType
	}
	return t
}

// depth is the deepest nesting that is read.
func (d *decoder) depth() int {
	if d.others {
		return 4 * MaxDepth // schemas of Kubernetes nest that deep
	}
	return MaxDepth
}

// siblings counts keys side by side: by column in blocks, by brackets in flow.
type siblings struct {
	columns []int // ascending
	counts  []int
	flow    []int // of each bracket that is open
}

// entry begins a new entry of a list at column: what is deeper has ended.
func (s *siblings) entry(column int) {
	for n := len(s.columns); n > 0 && s.columns[n-1] > column; n = len(s.columns) {
		s.columns, s.counts = s.columns[:n-1], s.counts[:n-1]
	}
}

// key counts the key at column and returns how many are in the same mapping.
func (s *siblings) key(column int, inFlow bool) int {
	if n := len(s.flow); inFlow && n > 0 {
		s.flow[n-1]++
		return s.flow[n-1]
	}
	s.entry(column)
	if n := len(s.columns); n == 0 || s.columns[n-1] < column {
		s.columns, s.counts = append(s.columns, column), append(s.counts, 0)
	}
	s.counts[len(s.counts)-1]++
	return s.counts[len(s.counts)-1]
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
