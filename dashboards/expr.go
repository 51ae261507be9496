package dashboards

import (
	"fmt"
	"slices"
	"strings"
)

// Recorded returns the names of the series that the generated rules record.
func Recorded() []string {
	var names []string
	for _, r := range recordings() {
		names = append(names, r.name)
	}
	return names
}

// Metrics returns the names in a PromQL expression that begin with "trimtab", sorted, each once:
// metrics and recorded series, also where a matcher of __name__ has one. The error is a text or
// bracket without an end. This is a scanner, not a parser; promtool checks more.
func Metrics(expr string) ([]string, error) {
	s := exprScanner{text: expr}
	for s.at < len(s.text) {
		if err := s.token(); err != nil {
			return nil, err
		}
	}
	if n := len(s.open); n > 0 {
		return nil, fmt.Errorf("%q is never closed", s.open[n-1])
	}
	slices.Sort(s.found)
	return slices.Compact(s.found), nil
}

// exprScanner walks an expression once.
type exprScanner struct {
	text  string
	at    int
	open  []byte
	name  bool // the matcher being read is of __name__
	found []string
}

// opener returns the bracket that c closes, or 0.
func opener(c byte) byte {
	switch c {
	case ')':
		return '('
	case ']':
		return '['
	case '}':
		return '{'
	}
	return 0
}

func (s *exprScanner) token() error {
	c := s.text[s.at]
	switch {
	case c == '#':
		end := strings.IndexByte(s.text[s.at:], '\n')
		if end < 0 {
			end = len(s.text) - s.at
		}
		s.at += end
		return nil
	case c == '"' || c == '\'' || c == '`':
		return s.quoted(c)
	case c == '(' || c == '[' || c == '{':
		s.open = append(s.open, c)
	case opener(c) != 0:
		n := len(s.open)
		if n == 0 || s.open[n-1] != opener(c) {
			return fmt.Errorf("%q closes nothing", c)
		}
		s.open = s.open[:n-1]
	case nameByte(c):
		s.word()
		return nil
	}
	s.at++
	return nil
}

func nameByte(c byte) bool {
	return c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// word is a name, a keyword or a number; inside braces it is a label's.
func (s *exprScanner) word() {
	from := s.at
	for s.at < len(s.text) && nameByte(s.text[s.at]) {
		s.at++
	}
	word := s.text[from:s.at]
	if len(s.open) > 0 && s.open[len(s.open)-1] == '{' {
		rest := strings.TrimLeft(s.text[s.at:], " \t\n")
		s.name = word == "__name__" && strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "=~")
		return
	}
	s.note(word)
}

func (s *exprScanner) quoted(quote byte) error {
	from := s.at + 1
	for i := from; i < len(s.text); i++ {
		switch {
		case s.text[i] == '\\' && quote != '`':
			i++
		case s.text[i] == quote:
			if s.name {
				s.note(s.text[from:i])
				s.name = false
			}
			s.at = i + 1
			return nil
		}
	}
	return fmt.Errorf("the text that begins with %.20s is never closed", s.text[s.at:])
}

func (s *exprScanner) note(word string) {
	if strings.HasPrefix(word, "trimtab_") || strings.HasPrefix(word, "trimtab:") {
		s.found = append(s.found, word)
	}
}
