package jsonvalue

import (
	"encoding/json"
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
	for in, want := range map[string]int64{`5`: 5, `"5"`: 5, `-7`: -7, `1e3`: 1000, `"1544712660000000000"`: 1544712660000000000, `18446744073709551615`: -1} {
		if n, ok := Value(in).Int(); !ok || n != want {
			t.Errorf("%s: %d %v, want %d", in, n, ok, want)
		}
	}
	for _, in := range []string{``, `null`, `1.5`, `"x"`, `1e40`, `true`, `{}`, `"NaN"`, `"Inf"`} {
		if n, ok := Value(in).Int(); ok {
			t.Errorf("%s: %d", in, n)
		}
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
