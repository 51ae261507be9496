package prometheus

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Selectors returns the vector selectors of a PromQL expression in order,
// each once, without their ranges and with their offsets, and the longest
// range. ok is false for what this scanner, which is no parser, does not
// understand: the @ modifier, and offsets behind a parenthesis.
func Selectors(expr string) (selectors []string, longest time.Duration, ok bool) {
	s := scanner{text: expr}
	for s.skipSpace(); s.at < len(s.text); s.skipSpace() {
		if !s.step() {
			return nil, 0, false
		}
	}
	return s.found, s.longest, true
}

// scanner walks an expression once.
type scanner struct {
	text    string
	at      int
	found   []string
	longest time.Duration
}

// step consumes one token or selector.
func (s *scanner) step() bool {
	switch c := s.text[s.at]; {
	case c == '"' || c == '\'' || c == '`':
		return s.skipText()
	case c == '{':
		return s.selector(s.at, s.at)
	case c == '[': // a subquery's range, behind a parenthesis
		return s.rangeOf()
	case c == '@' || c == '$':
		return false
	case c >= '0' && c <= '9' || c == '.':
		s.skipWhile(func(c byte) bool { return wordByte(c) || c == '.' })
		return true
	case wordByte(c):
		return s.word()
	}
	s.at++
	return true
}

// word consumes a name: of a function, a keyword, or a metric.
func (s *scanner) word() bool {
	from := s.at
	s.skipWhile(func(c byte) bool { return wordByte(c) || c == ':' })
	end := s.at
	name := strings.ToLower(s.text[from:end])
	s.skipSpace()
	next := byte(0)
	if s.at < len(s.text) {
		next = s.text[s.at]
	}
	switch name {
	case "by", "without", "on", "ignoring", "group_left", "group_right":
		if next == '(' {
			length := strings.IndexByte(s.text[s.at:], ')')
			s.at += length + 1
			return length >= 0
		}
		return strings.HasPrefix(name, "group_")
	case "and", "or", "unless", "bool", "inf", "nan", "atan2":
		return true
	case "offset":
		return false // a valid offset follows a selector, and was consumed with it
	}
	if next == '(' {
		return true
	}
	if aggregates(name) && s.clauseFollows() { // sum by (job) (…)
		return true
	}
	return s.selector(from, end)
}

// aggregates reports whether name is an aggregation that a by clause may follow.
func aggregates(name string) bool {
	return slices.Contains([]string{"sum", "min", "max", "avg", "group", "stddev", "stdvar", "count",
		"count_values", "bottomk", "topk", "quantile", "limitk", "limit_ratio"}, name)
}

// clauseFollows reports whether the next word is by or without.
func (s *scanner) clauseFollows() bool {
	end := s.at
	for end < len(s.text) && wordByte(s.text[end]) {
		end++
	}
	word := strings.ToLower(s.text[s.at:end])
	return word == "by" || word == "without"
}

// selector consumes what follows a metric's name at [from, end): the braces,
// the range, the offset.
func (s *scanner) selector(from, end int) bool {
	if s.at < len(s.text) && s.text[s.at] == '{' {
		if !s.skipBraces() {
			return false
		}
		end = s.at
	}
	selector := s.text[from:end]
	s.skipSpace()
	if s.at < len(s.text) && s.text[s.at] == '[' && !s.rangeOf() {
		return false
	}
	s.skipSpace()
	if rest := s.text[s.at:]; len(rest) > 6 && strings.EqualFold(rest[:6], "offset") && !wordByte(rest[6]) {
		s.at += 6
		s.skipSpace()
		begin := s.at
		if s.at < len(s.text) && s.text[s.at] == '-' {
			s.at++
		}
		s.skipWhile(wordByte)
		selector += " offset " + s.text[begin:s.at]
	}
	if !slices.Contains(s.found, selector) {
		s.found = append(s.found, selector)
	}
	return true
}

// rangeOf consumes [1m] or [1h:1m].
func (s *scanner) rangeOf() bool {
	end := strings.IndexByte(s.text[s.at:], ']')
	if end < 0 {
		return false
	}
	text, _, _ := strings.Cut(s.text[s.at+1:s.at+end], ":")
	if d, err := model.ParseDuration(strings.TrimSpace(text)); err == nil {
		s.longest = max(s.longest, time.Duration(d))
	}
	s.at += end + 1
	return true
}

// skipBraces consumes {…}; quotes inside may hold braces.
func (s *scanner) skipBraces() bool {
	for s.at++; s.at < len(s.text); {
		switch s.text[s.at] {
		case '}':
			s.at++
			return true
		case '"', '\'', '`':
			if !s.skipText() {
				return false
			}
		default:
			s.at++
		}
	}
	return false
}

// skipText consumes a quoted text.
func (s *scanner) skipText() bool {
	quote := s.text[s.at]
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && quote != '`':
			s.at++
		case c == quote:
			s.at++
			return true
		}
	}
	return false
}

// skipSpace consumes white space and comments.
func (s *scanner) skipSpace() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		case '#':
			s.skipWhile(func(c byte) bool { return c != '\n' })
		default:
			return
		}
	}
}

func (s *scanner) skipWhile(keep func(byte) bool) {
	for s.at < len(s.text) && keep(s.text[s.at]) {
		s.at++
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ':'
}

// ageQuery asks for the ages in seconds of what each selector finds: of the newest and of
// the oldest series of each target. The label trimtab tells which, since "or" drops series
// with equal labels.
func ageQuery(selectors []string, by string) string {
	var parts []string
	for i, s := range selectors {
		for _, of := range []struct{ word, function string }{{"newest", "min"}, {"oldest", "max"}} {
			parts = append(parts, fmt.Sprintf(`label_replace(%s by (%s) (time() - timestamp(%s)), "trimtab", "%s %d", "", "")`, of.function, by, s, of.word, i))
		}
	}
	return strings.Join(parts, " or ")
}

// byTarget are the labels that Prometheus gives every series of one scrape target.
const byTarget = "job, instance"

// upQuery asks for up, and for the age of its newest sample, of the targets that the
// selectors find, and of those that are away. They find as ageQuery does: VictoriaMetrics
// evaluates a selector alone only for some scrape intervals after its last sample.
func upQuery(selectors []string, away []target) string {
	var works, ages []string
	for _, s := range selectors {
		works = append(works, fmt.Sprintf("up and on (%s) timestamp(%s)", byTarget, s))
		ages = append(ages, fmt.Sprintf("time() - timestamp(up) and on (%s) timestamp(%s)", byTarget, s))
	}
	instances := map[string][]string{}
	for _, t := range away {
		instances[t.job] = append(instances[t.job], regexp.QuoteMeta(t.instance))
	}
	for _, job := range slices.Sorted(maps.Keys(instances)) {
		up := fmt.Sprintf("up{job=%q,instance=~%q}", job, strings.Join(instances[job], "|"))
		works, ages = append(works, up), append(ages, fmt.Sprintf("time() - timestamp(%s)", up))
	}
	return fmt.Sprintf(`label_replace(min by (%[1]s) (%[2]s), "trimtab", "up", "", "") or label_replace(min by (%[1]s) (%[3]s), "trimtab", "age", "", "")`,
		byTarget, strings.Join(works, " or "), strings.Join(ages, " or "))
}
