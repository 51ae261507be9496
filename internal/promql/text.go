package promql

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// tokens returns the tokens of an expression, without comments; nil if one is invalid.
func tokens(text string) (all []parser.Item) {
	l := parser.Lex(text)
	for {
		var one parser.Item
		switch l.NextItem(&one); one.Typ {
		case parser.EOF:
			return all
		case parser.ERROR:
			return nil
		case parser.COMMENT:
		default:
			all = append(all, one)
		}
	}
}

// OneLine returns an expression on one line, without comments: blanks and lines between its
// tokens become one blank, texts stay as they are.
func OneLine(text string) string { return printed(text, tokens(text)) }

func printed(text string, all []parser.Item) string {
	if len(all) == 0 {
		return text
	}
	var b strings.Builder
	for i, one := range all {
		if i > 0 && int(all[i-1].Pos)+lengthAt(text, all, i-1) < int(one.Pos) && !joined(all[i-1].Typ, one.Typ) {
			b.WriteByte(' ')
		}
		b.WriteString(one.Val)
	}
	return b.String()
}

// lengthAt returns the length of a token in the original text: its replacement may have another.
func lengthAt(text string, all []parser.Item, i int) int {
	from := int(all[i].Pos)
	if strings.HasPrefix(text[from:], all[i].Val) {
		return len(all[i].Val)
	}
	to := len(text)
	if i+1 < len(all) {
		to = int(all[i+1].Pos)
	}
	return len(strings.TrimRight(text[from:to], " \t\r\n"))
}

// joined reports whether no blank belongs between two tokens.
func joined(before, after parser.ItemType) bool {
	switch before {
	case parser.LEFT_PAREN, parser.LEFT_BRACE, parser.LEFT_BRACKET:
		return true
	}
	switch after {
	case parser.RIGHT_PAREN, parser.RIGHT_BRACE, parser.RIGHT_BRACKET, parser.COMMA:
		return true
	}
	return false
}

// WholeBuckets is [OneLine] with each bucket of a whole number matched in both spellings:
// Prometheus 3 stores le="1" as le="1.0".
func WholeBuckets(text string) string {
	all := tokens(text)
	braces := 0
	for i := range all {
		switch all[i].Typ {
		case parser.LEFT_BRACE:
			braces++
		case parser.RIGHT_BRACE:
			braces--
		case parser.STRING:
			if braces == 0 || i < 2 || all[i-1].Typ != parser.EQL || strings.Trim(all[i-2].Val, "\"'`") != "le" {
				continue
			}
			value, err := strconv.Unquote(all[i].Val)
			if whole := regexp.MustCompile(`^([0-9]{1,18})(\.0)?$`).FindStringSubmatch(value); err == nil && whole != nil {
				all[i-1].Val, all[i].Val = "=~", strconv.Quote(whole[1]+`(\.0)?`)
			}
		}
	}
	return printed(text, all)
}

// InRange inserts a range behind a selector at [from, to) of a text, before its modifiers.
func InRange(text string, from, to int, length string) string {
	selector := text[from:to]
	for _, one := range tokens(selector) {
		switch one.Typ {
		case parser.OFFSET, parser.AT, parser.ANCHORED, parser.SMOOTHED:
			at := strings.TrimRight(selector[:one.Pos], " \t\r\n")
			return at + "[" + length + "]" + selector[len(at):]
		}
	}
	return selector + "[" + length + "]"
}
