package config

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The slow and obvious way: all short texts against regular expressions.
func TestTwoPatternsMeetWhereSomeTextMatchesBoth(t *testing.T) {
	var texts []string
	for n, last := 0, []string{""}; n < 6; n++ {
		var next []string
		for _, text := range last {
			next = append(next, text+"a", text+"b")
		}
		texts, last = append(texts, next...), next
	}
	part := rapid.Custom(func(r *rapid.T) string {
		text := rapid.StringMatching(`[ab]{0,2}`)
		if rapid.Bool().Draw(r, "pattern") {
			return text.Draw(r, "before") + "*" + text.Draw(r, "behind")
		}
		return text.Draw(r, "plain") + "a"
	})
	expression := func(p string) *regexp.Regexp {
		return regexp.MustCompile("^" + strings.ReplaceAll(p, "*", ".+") + "$")
	}
	rapid.Check(t, func(r *rapid.T) {
		p, q := part.Draw(r, "p"), part.Draw(r, "q")
		a, b := expression(p), expression(q)
		want := false
		for _, text := range texts {
			want = want || a.MatchString(text) && b.MatchString(text)
		}
		if got := partsMeet(p, q); got != want {
			r.Errorf("%s and %s: %v, want %v", p, q, got, want)
		}
	})
}
