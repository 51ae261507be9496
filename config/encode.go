package config

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	promconfig "github.com/prometheus/common/config"
)

// Redacted returns the configuration, defaults included, as YAML that may be
// shown: every secret and every value of a header is <secret>.
func (c *Config) Redacted() []byte { return redacted(*c) }

func redacted(v any) []byte {
	tree, _ := encode(reflect.ValueOf(v), defaults(reflect.TypeOf(v)))
	b, err := yaml.Marshal(tree)
	if err != nil {
		return []byte("error: " + err.Error() + "\n")
	}
	return b
}

// defaults returns what a section is where a file does not say it; of one without defaults
// that differ from zero, nothing.
func defaults(t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[Config]():
		return reflect.ValueOf(*zero())
	case reflect.TypeFor[BesideTasks]():
		return reflect.ValueOf(BesideTasks{Slack: 1})
	}
	return reflect.Value{}
}

// encode converts v into a tree for the YAML writer; empty: v may be
// left out. byDefault is the value of v that a file need not contain, if that is known.
func encode(v, byDefault reflect.Value) (tree any, empty bool) {
	if isSecret(v.Type()) {
		return hidden, v.Len() == 0
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return short(x), x == 0
	case Bytes:
		return x.String(), x == 0
	case promconfig.URL: // of a proxy: it may hold a password
		return hidden, x.URL == nil
	case float64: // 1e+06 would be read as text
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x), x == 0
		}
		return x, x == 0
	case Prometheus:
		if x.URL == "" { // its defaults alone are no section
			return nil, true
		}
	case Alertmanager:
		if x.TokenFile == "" {
			return nil, true
		}
	case Record:
		if x.Path == "" {
			return nil, true
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, true
		}
		if s, ok := v.Interface().(fmt.Stringer); ok { // a URL: its String shows no password
			return s.String(), false
		}
		tree, _ = encode(v.Elem(), defaults(v.Elem().Type()))
		return tree, false
	case reflect.Struct:
		return encodeStruct(v, byDefault)
	case reflect.Map:
		return encodeMap(v)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i], _ = encode(v.Index(i), reflect.Value{})
		}
		return list, len(list) == 0
	}
	return v.Interface(), v.IsZero()
}

func encodeStruct(v, byDefault reflect.Value) (tree yaml.MapSlice, empty bool) {
	for i := range v.NumField() {
		name, inline := keyOf(v.Type().Field(i))
		if name == "" && !inline {
			continue
		}
		var field reflect.Value
		if byDefault.IsValid() {
			field = byDefault.Field(i)
		}
		inner, none := encode(v.Field(i), field)
		if none && scalar(v.Field(i)) && field.IsValid() && !field.IsZero() {
			none = false // zero was asked for
		}
		switch items, isMap := inner.(yaml.MapSlice); {
		case none:
		case inline && isMap:
			tree = append(tree, items...)
		case name == "http_headers":
			tree = append(tree, yaml.MapItem{Key: name, Value: hidden})
		default:
			tree = append(tree, yaml.MapItem{Key: name, Value: inner})
		}
	}
	return tree, len(tree) == 0
}

// scalar reports whether a value is one number, switch or text.
func scalar(v reflect.Value) bool {
	return v.CanInt() || v.CanFloat() || v.Kind() == reflect.Bool || v.Kind() == reflect.String
}

func encodeMap(v reflect.Value) (tree yaml.MapSlice, empty bool) {
	names := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		names[k.String()] = v.MapIndex(k)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inner, _ := encode(names[name], reflect.Value{})
		tree = append(tree, yaml.MapItem{Key: name, Value: inner})
	}
	return tree, len(tree) == 0
}

// hidden is shown in place of a secret.
const hidden = "<secret>"

// Secret is a text that no form of printing shows. Convert with string(s)
// where it is used, and nowhere else.
type Secret string

// String returns "<secret>", or "" when there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the secret from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret from JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML hides the secret from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format prints the configuration without its secrets, for every verb: the
// HTTP client's own secrets would be printed by %v.
func (c Config) Format(f fmt.State, _ rune) { _, _ = f.Write(c.Redacted()) }

// MarshalJSON refuses: show [Config.Redacted].
func (c Config) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("marshal configuration: use Redacted")
}

// Format prints the section without its secrets, for every verb.
func (p Prometheus) Format(f fmt.State, _ rune) { _, _ = f.Write(redacted(p)) }

// LogValue hides secrets from slog.
func (p Prometheus) LogValue() slog.Value { return slog.StringValue(string(redacted(p))) }

// LogValue hides secrets from slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(string(c.Redacted())) }

// Bytes is a size in bytes, written as 64MiB, 1GiB, 500kB or a bare number.
type Bytes int64

// Values is one text or a list of texts.
type Values []string

// byteUnits are the endings that a size may have.
func byteUnits() map[string]float64 {
	return map[string]float64{
		"": 1, "B": 1,
		"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}
}

// parseBytes reads a size; ok is false when s is not one.
func parseBytes(s string) (b Bytes, ok bool) {
	digits := strings.TrimRight(s, "kKMGTiB")
	factor, known := byteUnits()[s[len(digits):]]
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !known || err != nil || !(v >= 0) || v*factor > math.MaxInt64/2 {
		return 0, false
	}
	return Bytes(v * factor), true
}

// String prints the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b >= u.size && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}
