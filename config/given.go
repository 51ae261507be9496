package config

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Given has the settings of a configuration that differ from the defaults, for a file that is like it.
type Given struct {
	// Workloads are the configured ones, each as the text of a YAML map on one line.
	Workloads []string
	// Names are theirs, in the same order, and Cgroups the control groups of their knobs.
	Names, Cgroups []string
	// Secrets are the keys, such as prometheus.basic_auth.password, that are not known.
	Secrets []string
	// WrittenOut names the workloads whose SLO the file takes from another file or an object;
	// Workloads have its content instead.
	WrittenOut []string
	// Config is all of it.
	Config *Config

	sections yaml.MapSlice
}

// GivenBy reads what [Config.Redacted] printed, and leaves out whatever a file that does
// not say it has, too.
func GivenBy(redacted []byte) (*Given, error) {
	var tree yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(redacted, &tree, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	g := &Given{}
	tree, _ = g.revealed("", tree).(yaml.MapSlice)
	var workloads []any
	for _, item := range tree {
		if item.Key == "workloads" {
			workloads, _ = item.Value.([]any)
			continue
		}
		g.sections = append(g.sections, item)
	}
	for _, w := range workloads {
		g.entered(w)
	}
	var err error
	if g.Config, err = Parse("configuration", g.text(workloads...)); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	// What one section leaves open another may decide, and what a workload leaves open the
	// sections do: each is compared with all sections around it.
	all := g.sections
	for _, w := range workloads {
		m, ok := w.(yaml.MapSlice)
		if !ok {
			continue
		}
		m = without(m, func(m yaml.MapSlice) []byte { return (&Given{sections: all}).text(m) })
		g.Workloads = append(g.Workloads, flow(m))
	}
	beside := workloads
	if _, err := Parse("", g.text()); err == nil {
		beside = nil
	}
	g.sections = without(all, func(m yaml.MapSlice) []byte { return (&Given{sections: m}).text(beside...) })
	return g, nil
}

// revealed is a tree without its secrets.
func (g *Given) revealed(path string, v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		var out yaml.MapSlice
		for _, item := range v {
			at := join(path, fmt.Sprint(item.Key))
			if item.Value == hidden {
				g.Secrets = append(g.Secrets, at)
				continue
			}
			out = append(out, yaml.MapItem{Key: item.Key, Value: g.revealed(at, item.Value)})
		}
		return out
	case []any:
		for i := range v {
			v[i] = g.revealed(fmt.Sprintf("%s[%d]", path, i), v[i])
		}
	}
	return v
}

// entered notes a workload's name and group, and writes its SLO out.
func (g *Given) entered(workload any) {
	name, _ := at(workload, "name").(string)
	cgroup, _ := at(at(workload, "knob"), "cgroup").(string)
	g.Names, g.Cgroups = append(g.Names, name), append(g.Cgroups, cgroup)
	m, _ := workload.(yaml.MapSlice)
	for i := range m {
		slo, ok := m[i].Value.(yaml.MapSlice)
		if m[i].Key != "slo" || !ok || at(slo, "file") == nil && at(slo, "object") == nil {
			continue
		}
		m[i].Value = slices.DeleteFunc(slices.Clone(slo), func(item yaml.MapItem) bool {
			return item.Key == "file" || item.Key == "object" || item.Key == "name"
		})
		g.WrittenOut = append(g.WrittenOut, name)
	}
}

// at is the value of a key of a map, nil where there is none.
func at(v any, key string) any {
	m, _ := v.(yaml.MapSlice)
	for _, item := range m {
		if item.Key == key {
			return item.Value
		}
	}
	return nil
}

// text is a file of the sections and some workloads.
func (g *Given) text(workloads ...any) []byte {
	tree := slices.Clone(g.sections)
	if len(workloads) > 0 {
		tree = append(tree, yaml.MapItem{Key: "workloads", Value: workloads})
	}
	if len(tree) == 0 {
		return []byte("pool: {}\n") // an empty file is a mistake
	}
	b, err := yaml.Marshal(tree)
	if err != nil {
		return nil
	}
	return b
}

// without removes each key of a map without which file is the same configuration.
func without(m yaml.MapSlice, file func(yaml.MapSlice) []byte) yaml.MapSlice {
	means := func(m yaml.MapSlice) []byte {
		c, err := Parse("", file(m))
		if err != nil {
			return nil
		}
		return c.Redacted()
	}
	want := means(m)
	if want == nil {
		return m
	}
	for i := len(m) - 1; i >= 0; i-- {
		if less := slices.Delete(slices.Clone(m), i, i+1); bytes.Equal(means(less), want) {
			m = less
			continue
		}
		if inner, ok := m[i].Value.(yaml.MapSlice); ok {
			m = slices.Clone(m)
			m[i].Value = without(inner, func(less yaml.MapSlice) []byte {
				outer := slices.Clone(m)
				outer[i].Value = less
				return file(outer)
			})
		}
	}
	return m
}

// Set gives a key of a section.
func (g *Given) Set(section, key string, value any) {
	item := yaml.MapItem{Key: key, Value: value}
	for i := range g.sections {
		keys, ok := g.sections[i].Value.(yaml.MapSlice)
		if g.sections[i].Key != section || !ok {
			continue
		}
		keys = slices.DeleteFunc(slices.Clone(keys), func(one yaml.MapItem) bool { return one.Key == key })
		keys = append(keys, item)
		g.sections[i].Value = keys
		return
	}
	g.sections = append(g.sections, yaml.MapItem{Key: section, Value: yaml.MapSlice{item}})
}

// Sections are the lines of a file, one for each section, by its name.
func (g *Given) Sections() (names, lines []string) {
	for _, item := range g.sections {
		name := fmt.Sprint(item.Key)
		names, lines = append(names, name), append(lines, name+": "+flow(item.Value))
	}
	return names, lines
}

// unquoted reports whether YAML takes a text for itself without quotes.
func unquoted(s string) bool {
	const words = `^([A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+)?(ms|s|m|h|d|[KMGT]iB))$`
	return regexp.MustCompile(words).MatchString(s) &&
		!slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s))
}

// flow writes a value on one line.
func flow(v any) string {
	switch v := v.(type) {
	case yaml.MapSlice:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = flow(fmt.Sprint(item.Key)) + ": " + flow(item.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = flow(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		if unquoted(v) {
			return v
		}
		return quoted(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// quoted puts text into single quotes, in which a query is most readable, or into double quotes
// if single quotes cannot contain it.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
