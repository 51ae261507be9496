package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// position is a place in the file, both from 1.
type position struct{ line, col int }

// decoder converts the syntax tree of a file into values, keeps the position of each value and
// key, and collects every mistake. Paths are as in
// "workloads[2].knob.cpu".
type decoder struct {
	file      string
	errs      Errors
	at, keyAt map[string]position
	texts     map[string]ast.Node // the texts, to map places in them
	// meant are the paths that a misspelt or misplaced key was most likely to be.
	meant map[string]bool
	// zeros are numbers and times that the file sets to 0, as distinct from those that it leaves
	// out.
	zeros []zeroGiven
	// bounded are the values whose fields declare ranges.
	bounded []bounded
	// notes are remarks on what is read all the same.
	notes Errors
	// others: the file is not trimtab's own, and may use all of YAML.
	others bool
}

// zeroGiven is a number or a time that the file says is 0, and where it went.
type zeroGiven struct {
	path string
	to   reflect.Value
}

// replaced reports each 0 in the file that a default has replaced: 0 has no meaning
// there, and is not the same as leaving the key out.
func (d *decoder) replaced() {
	for _, z := range d.zeros {
		if !z.to.IsZero() {
			d.report(d.where(z.path), fmt.Sprintf("%s is 0, which has no meaning here", lastOf(z.path)), fmt.Sprintf("write more than 0, or remove the key for the default, %v", z.to.Interface()))
		}
	}
}

func (d *decoder) report(at position, message, hint string) {
	d.errs = append(d.errs, &Error{File: d.file, Line: at.line, Col: at.col, Message: message, Hint: hint})
}

// where returns the position of the value at path, or of the nearest parent
// that is in the file.
func (d *decoder) where(path string) position {
	for {
		if p, ok := d.at[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return position{1, 1}
		}
		path = path[:cut]
	}
}

// has reports whether the file holds the path.
func (d *decoder) has(path string) bool { _, ok := d.at[path]; return ok }

// positionOf returns where n begins.
func positionOf(n ast.Node) position {
	if entries := fields(n); len(entries) > 0 {
		if m, ok := n.(*ast.MappingNode); !ok || !m.IsFlowStyle {
			n = entries[0].Key
		}
	}
	if s, ok := n.(*ast.SequenceNode); ok && !s.IsFlowStyle && len(s.Values) > 0 && s.Values[0] != nil {
		return positionOf(s.Values[0])
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return position{t.Position.Line, t.Position.Column}
	}
	return position{1, 1}
}

// fields returns the entries of a mapping; nil when n is none.
func fields(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		if n.Values == nil {
			return []*ast.MappingValueNode{}
		}
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// describe names what n is, for messages.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a block of keys"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + scalarText(n)
	}
	return "something else"
}

// unmarshaler is how types of prometheus/common read themselves.
type unmarshaler interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// errReported stops a foreign UnmarshalYAML after a mistake was reported.
type errReported struct{}

func (errReported) Error() string { return "reported" }

// value decodes n into v.
func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	if n == nil {
		return
	}
	d.at[path] = positionOf(n)
	if isText(n) {
		d.texts[path] = n
	}
	if _, null := n.(*ast.NullNode); null {
		at := d.at[path]
		if k, ok := d.keyAt[path]; ok {
			at = k
		}
		d.report(at, fmt.Sprintf("%s has no value", lastOf(path)), "give it a value or remove the key")
		return
	}
	if u, ok := v.Addr().Interface().(unmarshaler); ok && !isSecret(v.Type()) {
		d.foreign(path, n, u)
		return
	}
	if d.scalar(path, n, v) {
		if k := v.Kind(); v.IsZero() && k != reflect.String && k != reflect.Bool {
			d.zeros = append(d.zeros, zeroGiven{path, v})
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.Slice:
		d.sequence(path, n, v)
	default:
		d.report(d.at[path], fmt.Sprintf("%s cannot be set here", lastOf(path)), "remove the key")
	}
}

// foreign lets a type of another package decode itself through us.
func (d *decoder) foreign(path string, n ast.Node, u unmarshaler) {
	before := len(d.errs)
	err := u.UnmarshalYAML(func(target any) error {
		d.value(path, n, reflect.ValueOf(target).Elem())
		if len(d.errs) > before {
			return errReported{}
		}
		return nil
	})
	if err == nil || len(d.errs) > before {
		return
	}
	message := firstLine(err.Error())
	if strings.HasSuffix(path, "url") { // the cause would quote a password in it
		message = lastOf(path) + " is not a URL"
	}
	d.report(d.at[path], message, "see the HTTP client configuration in Prometheus's documentation")
}

// structure decodes the keys of n into the fields of v.
func (d *decoder) structure(path string, n ast.Node, v reflect.Value) {
	entries := fields(n)
	if entries == nil {
		d.report(d.at[path], fmt.Sprintf("%s is %s, want keys and values", lastOf(path), describe(n)), "its keys: "+strings.Join(keysOf(v.Type()), ", "))
		return
	}
	known, rest := fieldsOf(v)
	outside := beside(entries, known)
	seen := map[string]position{}
	var old []renamedSection
	for _, e := range entries {
		name, at, ok := d.key(e, seen)
		if !ok {
			continue
		}
		child := join(path, name)
		d.keyAt[child] = at
		switch f, ok := known[name]; {
		case path == "" && renamed(name) != "" && v.Type() == reflect.TypeFor[Config]():
			old = append(old, renamedSection{name, at, e.Value})
		case ok && len(outside[name]) > 0:
			d.meant[child] = true
			d.report(at, fmt.Sprintf("%s has no value, and its keys stand beside it", name), fmt.Sprintf("indent %s further than %s", strings.Join(outside[name], ", "), name))
		case ok:
			d.value(child, e.Value, f)
			d.bound(child, name, v)
		case rest.IsValid():
			d.entry(child, name, e.Value, rest)
		case owned(outside, name):
			// The mistake is reported at the owner of the key.
		case lastOf(path) == "slo" && percentile(name) != "":
			d.meant[join(path, "latency")], d.meant[join(path, "fraction")] = true, true
			d.report(at, fmt.Sprintf("unknown key %q%s", clip(name), within(path)), "write latency: 200ms, fraction: "+percentile(name))
		case lastOf(path) == "kubernetes" && (name == "cronjob" || name == "job" || name == "pod"):
			d.meant[join(path, "deployment")] = true
			d.report(at, fmt.Sprintf("unknown key %q%s", clip(name), within(path)), "trimtab changes Deployments, StatefulSets, DaemonSets and Rollouts of Argo: write deployment: NAME, statefulset: NAME, daemonset: NAME or rollout: NAME")
		case path == "planning" && name == "exploration":
			d.report(at, "planning.exploration is gone: trials of other amounts found nothing that changed what services get", "leave it out: what services need is learnt from how they do")
		default:
			if best := nearest(name, keysOf(v.Type())); best != "" {
				d.meant[join(path, best)] = true
			}
			d.report(at, fmt.Sprintf("unknown key %q%s", clip(name), within(path)), suggest(name, keysOf(v.Type())))
		}
	}
	d.renamedSections(old, v)
}

// percentile is the share of requests that a name such as p99 means, or "".
func percentile(name string) string {
	digits, ok := strings.CutPrefix(name, "p")
	if !ok || len(digits) < 2 || len(digits) > 4 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return "0." + digits
}

// beside finds sections without a value whose keys are at the level of the section, because
// they are not indented: by section, the keys.
func beside(entries []*ast.MappingValueNode, known map[string]reflect.Value) map[string][]string {
	out := map[string][]string{}
	for _, owner := range entries {
		name := ""
		if t := owner.Key.GetToken(); t != nil {
			name = t.Value
		}
		f, ok := known[name]
		if _, null := owner.Value.(*ast.NullNode); !ok || !null {
			continue
		}
		t := f.Type()
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			continue
		}
		inner := keysOf(t)
		for _, e := range entries {
			key := ""
			if t := e.Key.GetToken(); t != nil {
				key = t.Value
			}
			if _, own := known[key]; !own && slices.Contains(inner, key) {
				out[name] = append(out[name], key)
			}
		}
	}
	return out
}

// owned reports whether a key is one of those that beside found.
func owned(outside map[string][]string, key string) bool {
	for _, keys := range outside {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// mapping decodes n into the map v.
func (d *decoder) mapping(path string, n ast.Node, v reflect.Value) {
	entries := fields(n)
	if entries == nil {
		d.report(d.at[path], fmt.Sprintf("%s is %s, want names and values", lastOf(path), describe(n)), "write "+lastOf(path)+": {name: value}")
		return
	}
	seen := map[string]position{}
	for _, e := range entries {
		name, at, ok := d.key(e, seen)
		if !ok {
			continue
		}
		child := join(path, name)
		d.keyAt[child] = at
		d.entry(child, name, e.Value, v)
	}
}

// entry decodes one value of a map.
func (d *decoder) entry(path, name string, n ast.Node, m reflect.Value) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	value := reflect.New(m.Type().Elem()).Elem()
	d.value(path, n, value)
	m.SetMapIndex(reflect.ValueOf(name).Convert(m.Type().Key()), value)
}

// listHint says how one value is written as a list.
func listHint(n ast.Node, t reflect.Type) string {
	if isText(n) && t.Elem().Kind() == reflect.String && !isSecret(t.Elem()) && !strings.ContainsAny(scalarText(n), ",[]{}#:") {
		return fmt.Sprintf("write [%s]", clip(scalarText(n)))
	}
	return "begin each entry with a dash, or write [a, b]"
}

// sequence decodes the list n into the slice v.
func (d *decoder) sequence(path string, n ast.Node, v reflect.Value) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.report(d.at[path], fmt.Sprintf("%s is %s, want a list", lastOf(path), describe(n)), listHint(n, v.Type()))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	for i, item := range s.Values {
		if item != nil {
			d.value(path+"["+strconv.Itoa(i)+"]", item, v.Index(i))
		}
	}
}

// key returns the name of an entry, and reports one that is no plain name or
// that was there before.
func (d *decoder) key(e *ast.MappingValueNode, seen map[string]position) (name string, at position, ok bool) {
	if t := e.Key.GetToken(); t != nil && t.Position != nil {
		at, name = position{t.Position.Line, t.Position.Column}, t.Value
	}
	if s, isText := ast.Node(e.Key).(*ast.StringNode); isText {
		name = s.Value
	}
	if name == "" {
		d.report(at, "a key has no name", "write name: value")
		return "", at, false
	}
	if first, twice := seen[name]; twice {
		d.report(at, fmt.Sprintf("key %q stands here a second time", clip(name)), fmt.Sprintf("it is already in line %d: remove one", first.line))
		return "", at, false
	}
	seen[name] = at
	return name, at, true
}

// fieldsOf returns the settable fields of v by key; rest is an inlined map
// that takes all other keys.
func fieldsOf(v reflect.Value) (known map[string]reflect.Value, rest reflect.Value) {
	known = map[string]reflect.Value{}
	for i := range v.NumField() {
		name, inline := keyOf(v.Type().Field(i))
		switch f := v.Field(i); {
		case inline && f.Kind() == reflect.Map:
			rest = f
		case inline:
			inner, r := fieldsOf(f)
			for k, x := range inner {
				if _, own := known[k]; !own {
					known[k] = x
				}
			}
			if r.IsValid() {
				rest = r
			}
		case name != "":
			known[name] = f
		}
	}
	return known, rest
}

// keysOf lists the keys that a struct takes, in order of declaration.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, inline := keyOf(f); {
		case inline && f.Type.Kind() == reflect.Struct:
			keys = append(keys, keysOf(f.Type)...)
		case name != "" && !strings.HasSuffix(name, "_ref"): // names of a secret manager that we do not have
			keys = append(keys, name)
		}
	}
	return keys
}

// keyOf reads the yaml tag of f; name is "" for what is not in the file.
func keyOf(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if !f.IsExported() || name == "-" {
		return "", false
	}
	return name, strings.Contains(options, "inline")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// lastOf returns the part of a path that a person looks for.
func lastOf(path string) string {
	if path == "" {
		return "the file"
	}
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[i+1:]
	}
	return path
}

// within says where, for a key below the top.
func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// clip bounds a text that is quoted in a message.
func clip(s string) string { return clipTo(s, 60) }

func clipTo(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
