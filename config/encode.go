package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Redacted returns the configuration, defaults included, as YAML that may be
// shown: every secret and every value of a header is <secret>.
func (c *Config) Redacted() []byte { return redacted(*c) }

func redacted(v any) []byte {
	tree, _ := encode(reflect.ValueOf(v))
	b, err := yaml.Marshal(tree)
	if err != nil {
		return []byte("error: " + err.Error() + "\n")
	}
	return b
}

// encode turns v into what the YAML writer takes; empty says that it may be
// left out.
func encode(v reflect.Value) (tree any, empty bool) {
	if isSecret(v.Type()) {
		return hidden, v.Len() == 0
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return short(x), x == 0
	case Bytes:
		return x.String(), x == 0
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
		tree, _ = encode(v.Elem())
		return tree, false
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Map:
		return encodeMap(v)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i], _ = encode(v.Index(i))
		}
		return list, len(list) == 0
	}
	return v.Interface(), v.IsZero()
}

func encodeStruct(v reflect.Value) (tree yaml.MapSlice, empty bool) {
	for i := range v.NumField() {
		name, inline := keyOf(v.Type().Field(i))
		if name == "" && !inline {
			continue
		}
		inner, none := encode(v.Field(i))
		switch items, isMap := inner.(yaml.MapSlice); {
		case none:
		case inline && isMap:
			tree = append(tree, items...)
		case strings.HasSuffix(name, "proxy_url"):
			tree = append(tree, yaml.MapItem{Key: name, Value: hidden})
		case name == "http_headers":
			tree = append(tree, yaml.MapItem{Key: name, Value: hidden})
		default:
			tree = append(tree, yaml.MapItem{Key: name, Value: inner})
		}
	}
	return tree, len(tree) == 0
}

func encodeMap(v reflect.Value) (tree yaml.MapSlice, empty bool) {
	names := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		names[k.String()] = v.MapIndex(k)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inner, _ := encode(names[name])
		tree = append(tree, yaml.MapItem{Key: name, Value: inner})
	}
	return tree, len(tree) == 0
}
