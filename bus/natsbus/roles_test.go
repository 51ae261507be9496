package natsbus

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// matches is the definition: a literal subject, token by token.
func matches(pattern, subject []string) bool {
	for i, p := range pattern {
		if p == ">" {
			return len(subject) > i
		}
		if i >= len(subject) || p != "*" && p != subject[i] {
			return false
		}
	}
	return len(pattern) == len(subject)
}

func TestAPermissionCoversWhatMatchesNothingThatItDoesNotMatch(t *testing.T) {
	// Every subject of up to four tokens; c stands for whatever no pattern names.
	var all [][]string
	for level, n := [][]string{{}}, 0; n < 4; n++ {
		var next [][]string
		for _, s := range level {
			for _, token := range []string{"a", "b", "c"} {
				next = append(next, append(append([]string{}, s...), token))
			}
		}
		all, level = append(all, next...), next
	}
	pattern := rapid.Custom(func(t *rapid.T) []string {
		p := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 0, 3).Draw(t, "tokens")
		if len(p) == 0 || rapid.Bool().Draw(t, "open") {
			p = append(p, ">")
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		p, s := pattern.Draw(t, "pattern"), pattern.Draw(t, "subject")
		want := true
		for _, literal := range all {
			want = want && (!matches(s, literal) || matches(p, literal))
		}
		if got := covers(strings.Join(p, "."), strings.Join(s, ".")); got != want {
			t.Errorf("%v covers %v: %t", p, s, got)
		}
	})
}
