package jsonvalue

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestTheEndOfAValueIsFoundAndWhatIsCutIsTold(t *testing.T) {
	for doc, want := range map[string]int{
		`{}`: 2, ` [ ] x`: 4, `{"a":[1,{"b":"\"}]"}],"c":null} {`: 31, `"\u00e4",`: 8, "true\n": 4, "-0.5e+3 ": 7, "0,": 1, `[[],{},"",false]`: 16, `{"a":{}}}`: 8,
	} {
		if n, err := End([]byte(doc)); n != want || err != nil {
			t.Errorf("%s: %d %v, want %d", doc, n, err, want)
		}
	}
	whole := `{"a":[1.5e3,{"b":"x\u00e4\n"},true,null],"c":-7}`
	for n := range len(whole) {
		if _, err := End([]byte(whole[:n])); !errors.Is(err, ErrCut) {
			t.Errorf("%s: %v", whole[:n], err)
		}
	}
	for doc, where := range map[string]int{`{"a" 1}`: 5, `[1 2]`: 3, `{a:1}`: 1, `[1,]`: 3, `{"a":1,}`: 7, `[}`: 1, `{]`: 1, "[\"a\nb\"]": 3, `["\x"]`: 2, `tru `: 3, `01 `: 1, `-x`: 1, `1.x`: 2, `NaN`: 0, `[1}`: 2} {
		n, err := End([]byte(doc))
		var wrong *SyntaxError
		if doc == `01 ` {
			if n != where {
				t.Errorf("%s: %d %v", doc, n, err)
			}
			continue
		}
		if !errors.As(err, &wrong) || wrong.Offset != where {
			t.Errorf("%s: %v, want %d", doc, err, where)
		}
	}
}

func TestAValueIsNestedAsDeepAsItMayBeAndNoDeeper(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat(`[`, n) + strings.Repeat(`]`, n)) }
	if n, err := End(deep(MaxDepth)); n != 2*MaxDepth || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := End(deep(MaxDepth + 1)); err == nil || !strings.Contains(err.Error(), "nested more than 1000 deep at byte 1000") {
		t.Errorf("%v", err)
	}
}

func FuzzEndAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\"",{"b":null}],"c":"\\"}`, "[[[[\n]]]]", `{"a":1}x`, `[1e5,-0.0,true,false]`, `{"":{}}`, `[`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		n, err := End(append(doc, ' ')) // behind which a number is complete
		valid := json.Valid(doc)
		var wrong *SyntaxError
		switch {
		case errors.As(err, &wrong) && strings.HasPrefix(wrong.What, "nested"):
		case err == nil && !json.Valid(append([]byte(nil), append(doc, ' ')[:n]...)):
			t.Fatalf("%q is no value", doc[:min(n, len(doc))])
		case err == nil && valid != (strings.Trim(string(doc[min(n, len(doc)):]), " \t\r\n") == ""):
			t.Fatalf("%q ends at %d, valid %v", doc, n, valid)
		case err != nil && valid:
			t.Fatalf("%q: %v", doc, err)
		}
	})
}

func TestTheFirstSpecialByteIsFoundAmongAnyOthers(t *testing.T) {
	plain := func(b []byte, at int) int {
		for at < len(b) && b[at] != '"' && b[at] != '\\' && b[at] >= ' ' {
			at++
		}
		return at
	}
	for first := range 256 {
		for second := range 256 {
			b := []byte("aaaaaaaaaaaaaaaaaaa")
			b[3], b[5] = byte(first), byte(second)
			for at := range 7 {
				if got, want := special(b, at), plain(b, at); got != want {
					t.Fatalf("%q from %d: %d, want %d", b, at, got, want)
				}
			}
		}
	}
}
