package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Printable returns s so that it is safe to print on a terminal: unprintable characters (control
// characters, marks that change the direction of writing) are escaped. Names and reasons come
// from spans, alerts and other programs.
func Printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// printableJSON makes every string of a JSON text printable, keys too.
func printableJSON(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return json.Marshal(printed(v))
}

func printed(v any) any {
	switch x := v.(type) {
	case string:
		return Printable(x)
	case []any:
		for i := range x {
			x[i] = printed(x[i])
		}
	case map[string]any:
		out := make(map[string]any, len(x))
		for key, value := range x {
			out[Printable(key)] = printed(value)
		}
		return out
	}
	return v
}
