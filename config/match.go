package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trimtab/trimtab"
)

// placeholder is replaced by the workload's label matchers in its PromQL queries.
const placeholder = "$match"

// maxQuery bounds a PromQL text.
const maxQuery = 16 << 10

// Matchers returns the labels as PromQL matchers in order of name, quoted so
// that no value can end its string: namespace="shop",deployment="checkout".
func Matchers(labels map[string]string) (string, error) {
	names := make([]string, 0, len(labels))
	for name, value := range labels {
		if !labelName(name) {
			return "", trimtab.Invalidf("label name %.60q: want letters, digits and _", name)
		}
		if !utf8.ValidString(value) {
			return "", trimtab.Invalidf("value of label %s: not UTF-8", name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		// Go's escapes are PromQL's; ASCII keeps every reader of logs safe.
		names[i] = name + "=" + strconv.QuoteToASCII(labels[name])
	}
	return strings.Join(names, ","), nil
}

// Expand replaces $match in query by the matchers of m.Prometheus. $match may be
// inside the braces of a selector, alone or between commas. Expand returns a query
// without $match as it is. The error is [trimtab.ErrInvalid].
func (m *Match) Expand(query string) (string, error) {
	places, bad := scanQuery(query)
	if bad != nil {
		return "", trimtab.Invalidf("expand %s: %s", placeholder, bad.message)
	}
	if len(places) == 0 {
		return query, nil
	}
	if len(m.Prometheus) == 0 && m.Kubernetes == nil {
		return "", trimtab.Invalidf("expand %s: the workload has no match.prometheus", placeholder)
	}
	matchers, err := Matchers(m.Prometheus)
	if err != nil {
		return "", fmt.Errorf("expand %s: %w", placeholder, err)
	}
	if len(m.Prometheus) == 0 {
		matchers = m.Kubernetes.matchers()
	}
	var b strings.Builder
	from := 0
	for _, at := range places {
		b.WriteString(query[from:at])
		b.WriteString(matchers)
		from = at + len(placeholder)
	}
	b.WriteString(query[from:])
	return b.String(), nil
}

// labelName reports whether s may name a label.
func labelName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 200
}

// queryError is a mistake in a PromQL text that needs no parser to be seen, with its byte
// offset.
type queryError struct {
	at            int
	message, hint string
}

// scanQuery returns the offsets of $match, and the first mistake that every PromQL parser
// would refuse. It checks only that brackets balance and quotes are closed.
func scanQuery(q string) (places []int, bad *queryError) {
	if len(q) > maxQuery {
		return nil, &queryError{0, fmt.Sprintf("query of %d bytes, limit %d", len(q), maxQuery), "use a recording rule"}
	}
	if strings.TrimSpace(q) == "" {
		return nil, &queryError{0, "the query is empty", "write PromQL, or remove the key"}
	}
	var open []int
	for i := 0; i < len(q); i++ {
		switch c := q[i]; c {
		case '"', '\'', '`':
			end := closing(q, i)
			if end < 0 {
				return nil, &queryError{i, "a quote is not closed", "add " + string(c)}
			}
			if k := strings.Index(q[i:end], placeholder); k >= 0 {
				return nil, &queryError{i + k, placeholder + " stands inside a text", "it is a list of matchers: write {$match}"}
			}
			i = end
		case '#':
			if k := strings.IndexByte(q[i:], '\n'); k >= 0 {
				i += k
			} else {
				i = len(q)
			}
		case '(', '[', '{':
			open = append(open, i)
		case ')', ']', '}':
			if len(open) == 0 || !pair(q[open[len(open)-1]], c) {
				return nil, &queryError{i, fmt.Sprintf("%q closes nothing", c), "check the brackets"}
			}
			open = open[:len(open)-1]
		case '$':
			if bad := checkPlaceholder(q, i, open); bad != nil {
				return nil, bad
			}
			places = append(places, i)
			i += len(placeholder) - 1
		}
	}
	if len(open) > 0 {
		at := open[len(open)-1]
		return nil, &queryError{at, fmt.Sprintf("%q is not closed", q[at]), "check the brackets"}
	}
	return places, nil
}

// checkPlaceholder says what is wrong with the $ at i; nil when it begins a
// $match between the braces of a selector.
func checkPlaceholder(q string, i int, open []int) *queryError {
	word := q[i+1:]
	if end := strings.IndexFunc(word, func(r rune) bool { return !labelName("a" + string(r)) }); end >= 0 {
		word = word[:end]
	}
	if word != placeholder[1:] {
		return &queryError{i, fmt.Sprintf("unknown variable $%s", clip(word)), "only $match is replaced; write a duration such as 1m for a dashboard's interval"}
	}
	if len(open) == 0 || q[open[len(open)-1]] != '{' {
		return &queryError{i, placeholder + " stands outside of braces", "write metric{$match}"}
	}
	before := strings.TrimRight(q[:i], " \n\t\r")
	after := strings.TrimLeft(q[i+len(placeholder):], " \n\t\r")
	if !strings.ContainsAny(before[len(before)-1:], "{,") || after == "" || !strings.ContainsAny(after[:1], "},") {
		return &queryError{i, placeholder + " is not between commas or braces", `write {$match} or {$match,code="200"}`}
	}
	return nil
}

// closing returns the index of the quote that closes the one at i, or -1.
func closing(q string, i int) int {
	for k := i + 1; k < len(q); k++ {
		switch {
		case q[k] == '\\' && q[i] != '`':
			k++
		case q[k] == q[i]:
			return k
		}
	}
	return -1
}

func pair(open, close byte) bool {
	return open == '(' && close == ')' || open == '[' && close == ']' || open == '{' && close == '}'
}
