package jsonvalue

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree rebuilds what encoding/json makes of a document, from walks alone.
func tree(v Value) any {
	switch {
	case v.IsObject():
		m := map[string]any{}
		for k, e := range v.Members() {
			m[k] = tree(e)
		}
		return m
	case v.IsArray():
		a := []any{}
		for e := range v.Elements() {
			a = append(a, tree(e))
		}
		return a
	}
	var x any
	if s, ok := v.Text(); ok {
		return s
	}
	if err := json.Unmarshal(v, &x); err != nil {
		panic(err)
	}
	return x
}

func TestTextsWithEscapedQuotesAndBackslashesEndWhereTheyEnd(t *testing.T) {
	for _, doc := range []string{`["a\\","b\"]","\\\"",""]`, ` { "a\u0022" : [ ] , "":{"x":-1e3 } , "t": true,"n":null } `, `"\\"`, `[[[]],{}]`} {
		v, err := Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal([]byte(doc), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, tree(v)); d != "" {
			t.Errorf("%s: %s", doc, d)
		}
	}
}

func TestIntegersAreReadFromNumbersAndTexts(t *testing.T) {
	for in, want := range map[string]int64{`5`: 5, `"5"`: 5, `-7`: -7, `1e3`: 1000, `"1544712660000000000"`: 1544712660000000000, `18446744073709551615`: -1,
		// As JavaScript's exporters write 64 bits; the halves may be signed.
		`{"low":-1013133952,"high":395276536}`: 395276536<<32 + 3281833344, `{"low":3281833344,"high":395276536,"unsigned":true}`: 395276536<<32 + 3281833344,
		`{"high":"1","low":0}`: 1 << 32, `{"low":-1,"high":-1}`: -1} {
		if n, ok := Value(in).Int(); !ok || n != want {
			t.Errorf("%s: %d %v, want %d", in, n, ok, want)
		}
	}
	for _, in := range []string{``, `null`, `1.5`, `"x"`, `1e40`, `true`, `{}`, `"NaN"`, `"Inf"`,
		`{"low":1}`, `{"low":1,"high":"x"}`, `{"low":1,"high":4294967296}`, `{"low":1,"high":{"low":1,"high":1}}`, `{"low":0.5,"high":1}`} {
		if n, ok := Value(in).Int(); ok {
			t.Errorf("%s: %d", in, n)
		}
	}
}

func TestMicrosecondsWithFractionsAreRoundedToNanoseconds(t *testing.T) {
	for in, want := range map[string]int64{
		`5`: 5000, `"5"`: 5000, `-7`: -7000, `0`: 0, `1.5`: 1500, `"1718000000000001.2344"`: 1718000000000001234, `1718000000000001.2345`: 1718000000000001235,
		`0.0004`: 0, `0.9996`: 1000, `-0.5`: -500, `-1.25`: -1250, `1e3`: 1000000, `1.718e15`: 1718000000000000000, `2.5E-1`: 250,
		`9223372036854775807`: math.MaxInt64, `-9223372036854775807`: math.MinInt64, `1e300`: math.MaxInt64, `-1e999`: math.MinInt64,
		`9223372036854774.999`: 9223372036854774999, `9223372036854775.999`: math.MaxInt64,
	} {
		if n, ok := Value(in).Thousandfold(); !ok || n != want {
			t.Errorf("%s: %d %v, want %d", in, n, ok, want)
		}
	}
	for _, in := range []string{``, `null`, `"x"`, `true`, `{}`, `[1]`, `"NaN"`, `"1.-5"`, `"1.5e"`, `{"low":1,"high":1}`, `""`} {
		if n, ok := Value(in).Thousandfold(); ok {
			t.Errorf("%s: %d", in, n)
		}
	}
}

// numbers asks every value for its numbers: none may panic.
func numbers(v Value) {
	v.Int()
	v.Thousandfold()
	for _, m := range v.Members() {
		numbers(m)
	}
	for e := range v.Elements() {
		numbers(e)
	}
}

func FuzzWalkAgreesWithEncodingJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x\"",{"b":null}],"c":"\\"}`))
	f.Add([]byte("[[[[\n]]]]"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Parse(doc)
		var want any
		if stdErr := json.Unmarshal(doc, &want); err != nil || stdErr != nil {
			return
		}
		numbers(v)
		// encoding/json replaces invalid UTF-8 in texts; round the walk's texts the same way.
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(tree(v))
		var x, y any
		_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y)
		if d := cmp.Diff(x, y); d != "" {
			t.Fatal(d)
		}
	})
}
