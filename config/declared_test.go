package config

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestEveryDeclaredRangeCanBeReadInTheUnitOfItsField(t *testing.T) {
	seen, ranges := map[reflect.Type]bool{}, 0
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			look(f.Type)
			want, value := f.Tag.Get("want"), f.Type
			if want == "" {
				continue
			}
			if value.Kind() == reflect.Pointer {
				value = value.Elem()
			}
			ranges++
			for _, word := range strings.Fields(want) {
				if strings.ContainsAny(word, "0123456789") && math.IsNaN(boundOf(reflect.Zero(value).Interface(), word)) {
					t.Errorf("%v.%s: %q of %q is no %v", of, f.Name, word, want, value)
				}
			}
		}
	}
	if look(reflect.TypeFor[Config]()); ranges < 40 {
		t.Errorf("only %d ranges", ranges)
	}
}

func TestAValueMeetsItsRangeUpToTheBounds(t *testing.T) {
	for _, c := range []struct {
		want    string
		in, out []float64
	}{
		{"1 to 100", []float64{1, 50, 100}, []float64{0.99, 100.1, math.NaN(), math.Inf(1)}},
		{"0 to below 1", []float64{0, 0.99}, []float64{-0.1, 1, math.NaN()}},
		{"more than 0 and at most 1", []float64{0.001, 1}, []float64{0, 1.001, math.NaN()}},
		{"more than 0 and less than 1", []float64{0.001, 0.999}, []float64{0, 1, math.NaN()}},
		{"at least 16", []float64{16, 17}, []float64{15.9, math.NaN()}},
	} {
		for _, x := range c.in {
			if !meets(x, c.want) {
				t.Errorf("%v is not %s", x, c.want)
			}
		}
		for _, x := range c.out {
			if meets(x, c.want) {
				t.Errorf("%v is %s", x, c.want)
			}
		}
	}
	if b := Bytes(16 << 20); !meets(b, "at least 16MiB") || meets(b-1, "at least 16MiB") {
		t.Error(fmt.Sprint(b))
	}
}
