package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// restartSections are the parts of the file that live as long as the process.
func restartSections() []string { return []string{"storage", "nats", "web"} }

// Change is one setting that differs between two configurations.
type Change struct {
	// Path names the setting, such as workloads[a].weight.
	Path string
	// Old and New are its values as text, without secrets; "none" for none.
	Old, New string
	// Restart: the change takes effect only after a restart.
	Restart bool
}

// String returns "path: old → new".
func (c Change) String() string {
	line := fmt.Sprintf("%s: %s → %s", c.Path, c.Old, c.New)
	if c.Restart {
		line += " (needs a restart)"
	}
	return line
}

// Changed returns what differs between two configurations, in order of path.
// Secrets are compared and not shown. Workloads are matched by name, so
// their order does not matter.
func Changed(old, new *Config) []Change {
	a, b := map[string]string{}, map[string]string{}
	flatten(a, "", reflect.ValueOf(*old))
	flatten(b, "", reflect.ValueOf(*new))
	paths := map[string]bool{}
	for p := range a {
		paths[p] = true
	}
	for p := range b {
		paths[p] = true
	}
	var changes []Change
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		x, before := a[p]
		y, after := b[p]
		if x == y && before == after {
			continue
		}
		changes = append(changes, Change{p, show(p, x, before), show(p, y, after), needsRestart(p)})
	}
	return changes
}

func needsRestart(path string) bool {
	return slices.ContainsFunc(restartSections(), func(s string) bool {
		return path == s || strings.HasPrefix(path, s+".")
	})
}

// secretMark begins the flattened form of a secret.
const secretMark = "\x00"

func show(path, value string, present bool) string {
	switch {
	case !present:
		return "none"
	case strings.HasPrefix(value, secretMark), strings.Contains(path, ".http_headers"), strings.HasSuffix(path, "proxy_url"):
		return hidden
	}
	return clip(value)
}

// flatten writes every non-zero leaf of v into m, by path.
func flatten(m map[string]string, path string, v reflect.Value) {
	if isSecret(v.Type()) {
		if v.Len() > 0 {
			m[path] = secretMark + v.String()
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if s, ok := v.Interface().(interface{ Redacted() string }); ok {
			m[path] = s.Redacted()
			return
		}
		flatten(m, path, v.Elem())
	case reflect.Struct:
		if w, ok := v.Interface().(Workload); ok {
			path = fmt.Sprintf("workloads[%s]", w.Name)
			m[path] = "present"
		}
		for i := range v.NumField() {
			switch name, inline := keyOf(v.Type().Field(i)); {
			case inline:
				flatten(m, path, v.Field(i))
			case name != "":
				flatten(m, join(path, name), v.Field(i))
			case v.Type().Field(i).Name == "URL": // promconfig.URL holds its value untagged
				flatten(m, path, v.Field(i))
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			flatten(m, join(path, k.String()), v.MapIndex(k))
		}
	case reflect.Slice:
		for i := range v.Len() {
			flatten(m, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	default:
		if !v.IsZero() {
			m[path] = fmt.Sprint(v.Interface())
		}
	}
}
