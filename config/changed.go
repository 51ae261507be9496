package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// restartSections are the parts of the file that a running process cannot
// take over: sockets, files and the layout of partitions.
func restartSections() []string {
	return []string{"pool.name", "analyzer.partitions", "actuator", "storage", "nats", "web", "otlp", "jaeger"}
}

// Changed describes what differs between two configurations, one line per
// setting in order of its path; lines that end in "(needs a restart)" are not
// taken over by a reload. Secrets are compared and not shown. Workloads are
// told apart by name, so their order does not matter.
func Changed(old, new *Config) []string {
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
	var lines []string
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		x, before := a[p]
		y, after := b[p]
		if x == y && before == after {
			continue
		}
		line := fmt.Sprintf("%s: %s → %s", p, show(p, x, before), show(p, y, after))
		if needsRestart(p) {
			line += " (needs a restart)"
		}
		lines = append(lines, line)
	}
	return lines
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
