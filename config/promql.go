package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// This file reads the part of PromQL that a share of requests is written in:
// numbers, selectors with a range, functions, sum by and without, and
// operators. The rest is not understood, never guessed: offset and @,
// subqueries, and the modifiers bool, on, ignoring and group_left.
//
// Grammar: https://prometheus.io/docs/prometheus/latest/querying/basics and
// …/operators. Prometheus's own parser reads all of it, and would raise a dozen
// modules and the binary by megabytes for the few forms that matter here.

// lexeme is one word, number, text, range or sign of a query.
type lexeme struct {
	kind     lexemeKind
	text     string
	from, to int // bytes of the query
}

type lexemeKind int

const (
	wordToken lexemeKind = iota
	numberToken
	textToken  // with its quotes
	rangeToken // [5m], with its brackets
	signToken
)

// lexemesOf splits a query; ok is false where a quote or a bracket is not closed.
func lexemesOf(query string) (out []lexeme, ok bool) {
	for at := 0; at < len(query); {
		from, kind := at, signToken
		switch c := query[at]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
			continue
		case c == '#':
			at += len(query[at:])
			if k := strings.IndexByte(query[from:], '\n'); k >= 0 {
				at = from + k + 1
			}
			continue
		case c == '"' || c == '\'' || c == '`':
			end := closing(query, at)
			if end < 0 {
				return nil, false
			}
			kind, at = textToken, end+1
		case c == '[':
			k := strings.IndexByte(query[at:], ']')
			if k < 0 {
				return nil, false
			}
			kind, at = rangeToken, at+k+1
		case c >= '0' && c <= '9' || c == '.':
			kind, at = numberToken, numberEnd(query, at)
		case wordStart(c):
			for kind = wordToken; at < len(query) && wordPart(query[at]); {
				at++
			}
		default:
			at = from + signLength(query[from:])
		}
		out = append(out, lexeme{kind, query[from:at], from, at})
	}
	return out, true
}

// wordStart allows $, for $match.
func wordStart(c byte) bool {
	return c == '_' || c == ':' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func wordPart(c byte) bool { return wordStart(c) || c >= '0' && c <= '9' }

// numberEnd returns where the number at from ends; 1e-3 is one number.
func numberEnd(query string, from int) int {
	at := from
	for ; at < len(query); at++ {
		c := query[at]
		exponent := (c == '+' || c == '-') && at > from && (query[at-1] == 'e' || query[at-1] == 'E')
		if c != '.' && !exponent && !wordPart(c) {
			break
		}
	}
	return at
}

// signLength is the length of the sign that s begins with. What is none in PromQL
// is one too: the parser refuses it.
func signLength(s string) int {
	for _, sign := range []string{"==", "!=", ">=", "<=", "=~", "!~"} {
		if strings.HasPrefix(s, sign) {
			return 2
		}
	}
	return 1
}

// matcher is one comparison between the braces of a selector.
type matcher struct{ label, sign, value string }

// matchersIn lists the matchers of a selector whose brace is lexemes[at], and
// where the selector ends. $match, and a metric's name in quotes, are none.
func matchersIn(lexemes []lexeme, at int) (out []matcher, end int, ok bool) {
	for at++; at < len(lexemes); at++ {
		switch t := lexemes[at]; {
		case t.text == "}":
			return out, at + 1, true
		case t.kind == wordToken && at+2 < len(lexemes) && lexemes[at+1].kind == signToken && lexemes[at+2].kind == textToken:
			if value, ok := unquoted(lexemes[at+2].text); ok {
				out = append(out, matcher{t.text, lexemes[at+1].text, value})
			}
			at += 2
		case t.text == "," || t.text == placeholder || t.kind == textToken:
		default:
			return nil, at, false
		}
	}
	return nil, at, false
}

// unquoted returns what a quoted text says.
func unquoted(s string) (string, bool) {
	if s[0] == '\'' { // as in double quotes, for PromQL
		s = `"` + strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `\'`, `'`), `"`, `\"`) + `"`
	}
	v, err := strconv.Unquote(s)
	return v, err == nil
}

// expression is a part of a query.
type expression struct {
	// op is an operator, a function or sum; "number", or "selector".
	op     string
	args   []*expression
	number float64
	// metric and over are of a selector; over is 0 where it has no range.
	metric string
	over   time.Duration
	// text is the part as it is written.
	text string
}

// promqlParser reads lexemes by recursive descent.
type promqlParser struct {
	query   string
	lexemes []lexeme
	at      int
	depth   int
}

// maxDepth bounds how deep expressions may stand in each other.
const maxDepth = 64

// parsePromQL reads a whole query; nil where it has anything that is not
// understood.
func parsePromQL(query string) *expression {
	if len(query) > maxQuery {
		return nil
	}
	lexemes, ok := lexemesOf(query)
	if !ok {
		return nil
	}
	p := &promqlParser{query: query, lexemes: lexemes}
	e := p.binary(0)
	if p.at < len(lexemes) {
		return nil
	}
	return e
}

// operators are those of a level, from those that bind least; nil above the last.
func operators(level int) []string {
	switch level {
	case 0:
		return []string{"or"}
	case 1:
		return []string{"and", "unless"}
	case 2:
		return []string{"==", "!=", ">", "<", ">=", "<="}
	case 3:
		return []string{"+", "-"}
	case 4:
		return []string{"*", "/", "%"}
	case 5:
		return []string{"^"}
	}
	return nil
}

// reserved reports whether a word names no metric or function here; the last two
// are the other kinds of [expression].
func reserved(word string) bool {
	switch strings.ToLower(word) {
	case "or", "and", "unless", "atan2", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset", "number", "selector":
		return true
	}
	return false
}

// binary reads operators of a level and above; all but ^ are taken from the
// left, and ^ is only read where it stands alone.
func (p *promqlParser) binary(level int) *expression {
	signs := operators(level)
	if signs == nil {
		return p.unary()
	}
	from := p.at
	left := p.binary(level + 1)
	for left != nil && slices.Contains(signs, strings.ToLower(p.peek())) {
		op := strings.ToLower(p.next())
		right := p.binary(level + 1)
		if right == nil {
			return nil
		}
		left = &expression{op: op, args: []*expression{left, right}, text: p.since(from)}
	}
	return left
}

func (p *promqlParser) peek() string {
	if p.at == len(p.lexemes) {
		return ""
	}
	return p.lexemes[p.at].text
}

func (p *promqlParser) next() string {
	s := p.peek()
	p.at = min(p.at+1, len(p.lexemes))
	return s
}

// since is the text from lexeme number from up to the last one read.
func (p *promqlParser) since(from int) string {
	return p.query[p.lexemes[from].from:p.lexemes[p.at-1].to]
}

// unary reads what operators stand between.
func (p *promqlParser) unary() *expression {
	if p.at == len(p.lexemes) || p.depth == maxDepth {
		return nil
	}
	p.depth++
	defer func() { p.depth-- }()
	from, t := p.at, p.lexemes[p.at]
	switch {
	case t.text == "(":
		p.at++
		e := p.binary(0)
		if e == nil || p.next() != ")" {
			return nil
		}
		inner := *e
		inner.text = p.since(from)
		return &inner
	case t.kind == numberToken:
		p.at++
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil
		}
		return &expression{op: "number", number: v, text: t.text}
	case t.text == "{":
		return p.selector(from, "")
	case t.kind == wordToken && !reserved(t.text):
		p.at++
		switch word := strings.ToLower(t.text); {
		case p.peek() == "(":
			return p.call(from, word)
		case word == "sum" && (strings.EqualFold(p.peek(), "by") || strings.EqualFold(p.peek(), "without")):
			if p.at++; p.skipLabels() && p.peek() == "(" {
				return p.call(from, word)
			}
			return nil
		}
		return p.selector(from, t.text)
	}
	return nil
}

// skipLabels reads (a, b).
func (p *promqlParser) skipLabels() bool {
	if p.next() != "(" {
		return false
	}
	for p.at < len(p.lexemes) {
		switch t := p.lexemes[p.at]; {
		case t.text == ")":
			p.at++
			return true
		case t.kind == wordToken || t.kind == textToken || t.text == ",":
			p.at++
		default:
			return false
		}
	}
	return false
}

// call reads the arguments of a function, and the clause that may follow a sum.
func (p *promqlParser) call(from int, name string) *expression {
	e := &expression{op: name}
	for p.at++; p.peek() != ")"; {
		arg := p.binary(0)
		if arg == nil {
			return nil
		}
		e.args = append(e.args, arg)
		if p.peek() == "," {
			p.at++
		} else if p.peek() != ")" {
			return nil
		}
	}
	p.at++
	if name == "sum" && (strings.EqualFold(p.peek(), "by") || strings.EqualFold(p.peek(), "without")) {
		if p.at++; !p.skipLabels() {
			return nil
		}
	}
	e.text = p.since(from)
	return e
}

// selector reads what follows a metric's name.
func (p *promqlParser) selector(from int, metric string) *expression {
	e := &expression{op: "selector", metric: metric}
	if p.peek() == "{" {
		_, end, ok := matchersIn(p.lexemes, p.at)
		if !ok {
			return nil
		}
		p.at = end
	}
	if p.at < len(p.lexemes) && p.lexemes[p.at].kind == rangeToken {
		text := p.next()
		d, err := model.ParseDuration(strings.TrimSpace(text[1 : len(text)-1]))
		if err != nil || d <= 0 {
			return nil
		}
		e.over = time.Duration(d)
	}
	e.text = p.since(from)
	return e
}
