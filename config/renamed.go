package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trimtab/trimtab"
)

// renamed returns the key of `beside` that a top-level section of an older file is now; "": another section.
func renamed(section string) string {
	return map[string]string{"colocate": "jobs", "speculate": "tasks", "batch": "manager"}[section]
}

// renamedSection is a section of the file with its old name.
type renamedSection struct {
	name string
	at   position
	node ast.Node
}

// renamedSections decodes sections with old names as keys of beside, once all others are read.
func (d *decoder) renamedSections(old []renamedSection, root reflect.Value) {
	for _, s := range old {
		into, _ := fieldsOf(root.FieldByName("Beside"))
		path := "beside." + renamed(s.name)
		if d.has(path) {
			d.report(s.at, fmt.Sprintf("%s is the old name of %s, which is in this file too", s.name, path), "remove one of them")
			continue
		}
		d.keyAt[path] = s.at
		d.value(path, s.node, into[renamed(s.name)])
		d.notes = append(d.notes, &Error{File: d.file, Line: s.at.line, Col: s.at.col, Message: fmt.Sprintf("%s is now called %s", s.name, path),
			Hint: "the old name is still read; trimtab check config --translate FILE prints the file with the new one"})
	}
}

// Translate returns the file at path with the sections of older files under their new names, comments
// included; all else is as it was. The error is that of [Load], or [trimtab.ErrInvalid] where the sections
// are not plain blocks.
func Translate(path string) ([]byte, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	from := sourcesBeside(path, nil, nil)
	before, _, err := parse(path, data, from)
	if err != nil {
		return nil, err
	}
	var all, moved []string
	at, key := -1, ""
	for line := range strings.Lines(string(data)) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.ContainsAny(name, " \t#") {
			key = name
			if now := renamed(key); now != "" {
				line = now + strings.TrimPrefix(line, key)
				if at < 0 {
					at = len(all)
				}
			}
		}
		switch {
		case renamed(key) == "" || strings.HasPrefix(line, "#"):
			all = append(all, line)
		case strings.TrimSpace(line) == "":
			moved = append(moved, line)
		default:
			moved = append(moved, "  "+line)
		}
	}
	if at >= 0 {
		all = slices.Insert(all, at, append([]string{"beside:\n"}, moved...)...)
	}
	text := []byte(strings.Join(all, ""))
	after, d, err := parse(path, text, from)
	if err != nil || len(d.notes) > 0 || len(Changed(before, after)) > 0 {
		return nil, trimtab.Invalidf("translate %s: its sections are not plain blocks: write colocate, speculate and batch as jobs, tasks and manager below beside", path)
	}
	return text, nil
}
