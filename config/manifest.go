package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// This file reads YAML that others wrote, in their own form: several documents, lists of
// objects, anchors, aliases, merges and tags, in the order of the file.

// maxFollowed bounds the merges that a file may make, since one that merges itself into
// itself over and over grows without end.
const maxFollowed = 10_000

// manifest is one such file.
type manifest struct {
	*decoder
	// anchors has the node that each alias refers to.
	anchors  map[*ast.AliasNode]ast.Node
	followed int
}

// openManifest reads the documents of a file, without empty ones; hint says what to write
// instead of an empty file.
func openManifest(filename string, data []byte, hint string) (*manifest, []item) {
	m := &manifest{decoder: newDecoder(filename), anchors: map[*ast.AliasNode]ast.Node{}}
	m.others = true
	return m, m.documents(data, hint)
}

func (m *manifest) documents(data []byte, hint string) (out []item) {
	if len(data) > MaxBytes {
		m.report(position{1, 1}, fmt.Sprintf("the file is larger than %d bytes", MaxBytes), "split it")
		return nil
	}
	if at, message, hint := unreadable(data, true); message != "" {
		m.report(at, message, hint)
		return nil
	}
	file := m.parse(strings.TrimPrefix(string(data), "\ufeff"))
	if file == nil {
		return nil
	}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType || doc.Body.Type() == ast.NullType {
			continue
		}
		ast.Walk(&anchors{m, map[string]ast.Node{}}, doc.Body)
		x := item{m, fmt.Sprintf("document%d", i), m.resolve(doc.Body)}
		if x.node == nil {
			continue
		}
		m.at[x.path] = positionOf(x.node)
		out = append(out, x)
	}
	if len(out) == 0 && len(m.errs) == 0 {
		m.report(position{1, 1}, "the file is empty", hint)
	}
	return out
}

// anchors walks through a document in order, so that an alias refers to the last anchor of its
// name before it.
type anchors struct {
	m  *manifest
	of map[string]ast.Node
}

// Visit implements ast.Visitor.
func (a *anchors) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		a.of[tokenOf(n.Name)] = n.Value
	case *ast.AliasNode:
		name := tokenOf(n.Value)
		value, ok := a.of[name]
		if !ok && len(a.m.errs) < maxErrors {
			a.m.report(positionOf(n), fmt.Sprintf("*%s stands for nothing: no value before it has the anchor &%[1]s", clip(name)), "write the anchor, or the value itself")
		}
		a.m.anchors[n] = value
	}
	return a
}

func tokenOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// resolve follows aliases, anchors and tags to a node; nil: there is none.
func (m *manifest) resolve(n ast.Node) ast.Node {
	for range MaxDepth {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.TagNode:
			n = x.Value
		case *ast.AliasNode:
			n = m.anchors[x]
		default:
			return n
		}
	}
	return nil
}

// entries returns the entries of a mapping: its own, then those that it merges from others.
func (m *manifest) entries(n ast.Node, depth int) []*ast.MappingValueNode {
	all := fields(m.resolve(n))
	merges := func(e *ast.MappingValueNode) bool { _, is := e.Key.(*ast.MergeKeyNode); return is }
	if !slices.ContainsFunc(all, merges) || depth > MaxDepth {
		return all
	}
	own := slices.DeleteFunc(slices.Clone(all), merges)
	for _, e := range all {
		if !merges(e) {
			continue
		}
		from := []ast.Node{e.Value}
		if s, list := m.resolve(e.Value).(*ast.SequenceNode); list {
			from = s.Values
		}
		for _, one := range from {
			if m.followed++; m.followed > maxFollowed {
				return own
			}
			own = append(own, m.entries(one, depth+1)...)
		}
	}
	return own
}

// object is one object of a manifest: a document, or an entry of a list.
type object struct {
	item
	version, kind string
}

// objects takes lists apart: kubectl's (kind: List), and those that the API server
// answers with (kind: HorizontalPodAutoscalerList), whose entries have no kind of their own.
func objects(documents []item) (out []object) {
	for _, x := range documents {
		version, kind := x.get("apiVersion").text(), x.get("kind").text()
		of, list := strings.CutSuffix(kind, "List")
		if !list || !x.get("items").has() {
			out = append(out, object{x, version, kind})
			continue
		}
		for _, y := range x.get("items").items() {
			o := object{y, y.get("apiVersion").text(), y.get("kind").text()}
			if of != "" && o.kind == "" {
				o.kind = of
			}
			if of != "" && o.version == "" {
				o.version = version
			}
			out = append(out, o)
		}
	}
	return out
}

// String names an object: "Service shop/basket".
func (x *object) String() string {
	name := strings.Trim(x.get("metadata", "namespace").text()+"/"+x.get("metadata", "name").text(), "/")
	switch {
	case x.kind == "":
		return "a document without a kind"
	case name == "":
		return clip(x.kind)
	}
	return clip(x.kind) + " " + clip(name)
}

// item is a value of a manifest, or the place where one is missing.
type item struct {
	m    *manifest
	path string
	node ast.Node // nil: it is not there
}

// get returns the value under a chain of keys.
func (x item) get(keys ...string) item {
	for _, key := range keys {
		next := item{m: x.m, path: join(x.path, key)}
		for _, e := range x.m.entries(x.node, 0) {
			if keyText(e.Key) != key {
				continue
			}
			next.node = x.m.resolve(e.Value)
			x.m.keyAt[next.path] = positionOf(e.Key)
			if next.node != nil {
				x.m.at[next.path] = positionOf(next.node)
				if isText(next.node) {
					x.m.texts[next.path] = next.node
				}
			}
			break
		}
		x = next
	}
	return x
}

func keyText(n ast.MapKeyNode) string {
	if s, ok := ast.Node(n).(*ast.StringNode); ok {
		return s.Value
	}
	return tokenOf(n)
}

// has reports whether the value is there.
func (x item) has() bool {
	_, null := x.node.(*ast.NullNode)
	return x.node != nil && !null
}

// items returns the entries of a list.
func (x item) items() (out []item) {
	s, ok := x.node.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	for i, n := range s.Values {
		one := item{x.m, fmt.Sprintf("%s[%d]", x.path, i), x.m.resolve(n)}
		if one.node != nil {
			x.m.at[one.path] = positionOf(one.node)
			if isText(one.node) {
				x.m.texts[one.path] = one.node
			}
		}
		out = append(out, one)
	}
	return out
}

// text returns a scalar as it is in the file, "" if there is none.
func (x item) text() string {
	if !x.has() || !isText(x.node) && !isNumber(x.node) {
		return ""
	}
	return scalarText(x.node)
}

// word is a text where Kubernetes takes nothing else. kubectl reads YAML 1.1, in which Off, No
// or Yes without quotes are booleans; the API server refuses these, and numbers.
func (x item) word() string {
	if text := tokenOf(x.node); isPlain(x.node) && (!isText(x.node) || slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(text))) {
		x.fail(fmt.Sprintf("%s is %s without quotes, which kubectl takes for a boolean or a number", lastOf(x.path), clip(text)), fmt.Sprintf("write %q", clip(text)))
		return text
	}
	return x.text()
}

// isPlain reports whether a scalar is there, and has no quotes.
func isPlain(n ast.Node) bool {
	if _, ok := n.(*ast.BoolNode); ok || isNumber(n) {
		return true
	}
	s, ok := n.(*ast.StringNode)
	return ok && s.GetToken().Type == token.StringType
}

// number reads a scalar, in quotes or not, and reports what is none.
func (x item) number() (v float64, ok bool) {
	text := x.text()
	if n, whole := x.node.(*ast.IntegerNode); whole {
		text = fmt.Sprint(n.Value) // 010 is 8
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		x.fail(fmt.Sprintf("%s is no number", lastOf(x.path)), "write a plain number")
		return 0, false
	}
	return v, true
}

// fail reports a mistake at the value, or at the nearest parent that exists.
func (x item) fail(message, hint string) {
	if len(x.m.errs) < maxErrors {
		x.m.report(x.m.where(x.path), message, hint)
	}
}
