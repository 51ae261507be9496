package rulefile

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// maxDepth limits the nesting, as the parser is recursive, and maxKeys the keys of one mapping,
// as its time grows with their square.
const (
	maxDepth = 32
	maxKeys  = 1000
)

// bounds counts what would exhaust the parser.
type bounds struct {
	flow, flowKeys int
	line, entries  int
	// columns are those of the mappings that are open, ascending.
	columns []int
	keys    []int
}

// refuses returns the first token that must not reach the parser, and why.
func (b *bounds) refuses(tokens token.Tokens) (*token.Token, string) {
	for i, t := range tokens {
		if t.Position.Line != b.line {
			b.line, b.entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.MappingKeyType:
			return t, "anchors, aliases, merges and keys that begin with ? are not read here"
		case token.SequenceStartType, token.MappingStartType:
			b.flow++
		case token.SequenceEndType, token.MappingEndType:
			if b.flow--; b.flow <= 0 {
				b.flowKeys = 0
			}
		case token.SequenceEntryType:
			b.entries++
			b.close(t.Position.Column)
		case token.MappingValueType:
			if i > 0 && b.key(tokens[i-1].Position.Column) > maxKeys {
				return t, fmt.Sprintf("more than %d keys side by side", maxKeys)
			}
		}
		if b.flow > maxDepth || b.entries > maxDepth || len(b.columns) > maxDepth {
			return t, fmt.Sprintf("nested deeper than %d levels", maxDepth)
		}
	}
	return nil, ""
}

// close ends the mappings that are deeper than column.
func (b *bounds) close(column int) {
	for n := len(b.columns); n > 0 && b.columns[n-1] > column; n-- {
		b.columns, b.keys = b.columns[:n-1], b.keys[:n-1]
	}
}

// key returns how many keys the mapping of the key at column has so far.
func (b *bounds) key(column int) int {
	if b.flow > 0 {
		b.flowKeys++
		return b.flowKeys
	}
	b.close(column)
	n := len(b.columns)
	if n == 0 || b.columns[n-1] < column {
		b.columns, b.keys = append(b.columns, column), append(b.keys, 0)
		n++
	}
	b.keys[n-1]++
	return b.keys[n-1]
}
