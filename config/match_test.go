package config_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

func TestMatchStandsForTheLabelsInOrderOfName(t *testing.T) {
	m := config.Match{Prometheus: map[string]string{"namespace": "shop", "deployment": "checkout"}}
	const labels = `deployment="checkout",namespace="shop"`
	for query, want := range map[string]string{
		`http_requests_total{$match}`:                    `http_requests_total{` + labels + `}`,
		`x{$match,code="5.."}`:                           `x{` + labels + `,code="5.."}`,
		`x{code="5..", $match }`:                         `x{code="5..", ` + labels + ` }`,
		`sum(rate(a{$match}[1m])) / sum(b{$match,c=""})`: `sum(rate(a{` + labels + `}[1m])) / sum(b{` + labels + `,c=""})`,
		`sum(up)`: `sum(up)`,
	} {
		if got, err := m.Expand(query); err != nil || got != want {
			t.Errorf("%s: %s, %v", query, got, err)
		}
	}
	for _, query := range []string{`x{a="$match"}`, `$match`, `x{$matches}`, `x{$match a="b"}`, `x{a="b"$match}`, `x[$__interval]`, `x{$match`, `x{a=$match}`} {
		if got, err := m.Expand(query); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %s, %v", query, got, err)
		}
	}
	if _, err := (&config.Match{}).Expand(`x{$match}`); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("no labels: %v", err)
	}
}

// hostile draws texts that would end a string, a selector or a query.
func hostile() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.RuneFrom([]rune("\"'`\\{}[](),=~!#$\n\r\t\x00\x7f aé\u2028\U0001F600nux0"))),
		rapid.SampledFrom([]string{`"} or up{a="`, `\`, `\"`, `"`, "$match", "a\nb", `\x22`, `"}) or vector(1) #`}),
	)
}

// TestNoLabelValueEscapesItsString is promise S12, against a slow and obvious
// reader of matchers. The integration test asks a real Prometheus.
func TestNoLabelValueEscapesItsString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.MapOfN(rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_]{0,8}`), hostile(), 1, 4).Draw(t, "labels")
		for _, v := range labels {
			if !utf8.ValidString(v) {
				t.Skip("not UTF-8")
			}
		}
		m := config.Match{Prometheus: labels}
		got, err := m.Expand(`x{$match,last="1"}`)
		if err != nil {
			t.Fatal(err)
		}
		inner, ok := strings.CutPrefix(got, "x{")
		inner, ok2 := strings.CutSuffix(inner, `,last="1"}`)
		if !ok || !ok2 {
			t.Fatalf("the query around it changed: %s", got)
		}
		if diff := cmp.Diff(labels, readMatchers(t, inner)); diff != "" {
			t.Fatalf("%s (-want +got)\n%s", got, diff)
		}
	})
}

// readMatchers reads name="value",… character by character.
func readMatchers(t *rapid.T, s string) map[string]string {
	labels := map[string]string{}
	for s != "" {
		name, rest, ok := strings.Cut(s, `="`)
		if !ok {
			t.Fatalf("no matcher in %q", s)
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\n' {
				t.Fatalf("a raw line break in %q", rest)
			}
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		value, err := strconv.Unquote(`"` + rest[:end] + `"`)
		if err != nil {
			t.Fatalf("%q: %v", rest[:end], err)
		}
		labels[name] = value
		s = strings.TrimPrefix(rest[end+1:], ",")
	}
	return labels
}

func TestWhatIsNoLabelIsRefused(t *testing.T) {
	for _, labels := range []map[string]string{{"a b": "x"}, {"": "x"}, {"1a": "x"}, {`a="b",c`: "x"}, {"a": "\xff"}, {"é": "x"}} {
		if got, err := config.Matchers(labels); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%v: %s, %v", labels, got, err)
		}
	}
}
