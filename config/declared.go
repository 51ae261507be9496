package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A field that is a number, a time or a size declares its range in the words in which a
// mistake is reported, one that is a word the words that there are, and both the hint where
// it is not that of their kind:
//
//	Ceiling float64 `yaml:"ceiling" want:"1 to 100" hint:"4 lets a workload borrow …"`
//	Class trimtab.Class `yaml:"class" of:"latency-critical best-effort"`

// bounded is a value of the file whose field declares a range.
type bounded struct {
	path           string
	value          any
	want, of, hint string
}

// bound records the field of v with a name in the file, if it declares a range.
func (d *decoder) bound(path, name string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, _ := keyOf(f)
		b := bounded{path, nil, f.Tag.Get("want"), f.Tag.Get("of"), f.Tag.Get("hint")}
		if x := reflect.Indirect(v.Field(i)); key == name && x.IsValid() && b.want+b.of != "" {
			b.value = x.Interface()
			d.bounded = append(d.bounded, b)
		}
	}
}

// declared reports the values that are not what their fields declare.
func (v *validator) declared() {
	for _, b := range v.bounded {
		if word := fmt.Sprint(b.value); b.of != "" {
			if all := strings.Fields(b.of); word != "" && !slices.Contains(all, word) {
				v.fail(b.path, fmt.Sprintf("unknown %s %q", lastOf(b.path), clip(word)), cmp.Or(b.hint, suggest(word, all)))
			}
			continue
		}
		x, text, hint := asNumber(b.value), fmt.Sprint(b.value), "remove the key for the default"
		switch d, isTime := b.value.(time.Duration); {
		case isTime:
			text, hint = short(d), "write a duration in that range, or remove the key for the default"
		case b.want == "more than 0 and at most 1":
			hint = "write a share of 1: 20% is 0.2"
			if x >= 2 && x <= 100 {
				hint = fmt.Sprintf("write a share of 1: %v%% is %s", x, rounded(x/100))
			}
		}
		if !meets(b.value, b.want) {
			v.fail(b.path, fmt.Sprintf("%s is %s, want %s", lastOf(b.path), text, b.want), cmp.Or(b.hint, hint))
		}
	}
}

// meets reports whether a value is in the declared range, such as "1s to 1h", "0 to below 1",
// "at least 16MiB" or "more than 0 and at most 1".
func meets(value any, want string) bool {
	x := asNumber(value)
	meets := func(bound float64) bool { return x >= bound }
	for _, word := range strings.Fields(want) {
		switch word {
		case "more":
			meets = func(bound float64) bool { return x > bound }
		case "to", "most":
			meets = func(bound float64) bool { return x <= bound }
		case "below", "less":
			meets = func(bound float64) bool { return x < bound }
		case "at", "least", "than", "and":
		default:
			if !meets(boundOf(value, word)) {
				return false
			}
		}
	}
	return true
}

// boundOf reads a bound in the unit of a value; NaN: it is none.
func boundOf(value any, text string) float64 {
	switch value.(type) {
	case time.Duration:
		if d, err := time.ParseDuration(text); err == nil {
			return float64(d)
		}
	case Bytes:
		if b, ok := parseBytes(text); ok {
			return float64(b)
		}
	default:
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x
		}
	}
	return math.NaN()
}

// asNumber is a number, a time in nanoseconds or a size in bytes.
func asNumber(value any) float64 {
	return reflect.ValueOf(value).Convert(reflect.TypeFor[float64]()).Float()
}
