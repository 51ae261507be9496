package calc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// MaxBytes is the largest input that [Decode] reads.
const MaxBytes = 1 << 30

// Func runs one algorithm: the input as JSON in, a value to be printed as
// JSON out. Errors are trimtab.ErrInvalid where the input is at fault.
type Func func(io.Reader) (any, error)

// Decode reads one JSON value into the struct that into points to. Fields
// without `omitempty` are required; null is taken only where the field is a
// pointer; names must match exactly. Errors are trimtab.ErrInvalid and begin
// with line:column.
func Decode(r io.Reader, into any) error {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	if len(data) > MaxBytes {
		return trimtab.Invalidf("read input: more than %d bytes", MaxBytes)
	}
	c := checker{json.NewDecoder(bytes.NewReader(data)), data}
	c.tokens.UseNumber()
	if err := c.value(reflect.TypeOf(into).Elem(), 0); err != nil {
		return err
	}
	if at := c.next(); at < len(data) {
		return c.errorf(at, "data after the end of the input")
	}
	if err := json.Unmarshal(data, into); err != nil {
		return trimtab.Invalidf("1:1: %w", err) // the checker has seen all that can go wrong
	}
	return nil
}

// maxDepth bounds the nesting; no input of an algorithm comes near.
const maxDepth = 32

// checker walks the tokens along the type that they are to fill.
type checker struct {
	tokens *json.Decoder
	data   []byte
}

// next returns where the next token starts.
func (c *checker) next() int {
	at := int(c.tokens.InputOffset())
	for at < len(c.data) && strings.IndexByte(" \t\r\n,:", c.data[at]) >= 0 {
		at++
	}
	return at
}

func (c *checker) errorf(at int, format string, args ...any) error {
	before := c.data[:min(at, len(c.data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := at - bytes.LastIndexByte(before, '\n')
	return trimtab.Invalidf("%d:%d: %w", line, column, fmt.Errorf(format, args...))
}

// token reads one token; at is where it starts.
func (c *checker) token() (t json.Token, at int, err error) {
	at = c.next()
	t, err = c.tokens.Token()
	switch {
	case err == nil:
		return t, at, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, at, c.errorf(len(c.data), "the input ends too early")
	}
	return nil, at, c.errorf(at, "%w", err)
}

// value checks one value against the type t.
func (c *checker) value(t reflect.Type, depth int) error {
	if depth > maxDepth {
		return c.errorf(c.next(), "nested deeper than %d", maxDepth)
	}
	nullable := t.Kind() == reflect.Pointer
	if nullable {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return c.own(t, nullable)
	}
	token, at, err := c.token()
	if err != nil {
		return err
	}
	if token == nil && nullable {
		return nil
	}
	return c.typed(t, token, at, depth)
}

// typed checks the value that begins with token.
func (c *checker) typed(t reflect.Type, token json.Token, at, depth int) error {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		if token != json.Delim('{') {
			return c.errorf(at, "want an object, not %s", name(token))
		}
		return c.object(t, at, depth)
	case reflect.Slice:
		if token != json.Delim('[') {
			return c.errorf(at, "want a list, not %s", name(token))
		}
		for c.tokens.More() {
			if err := c.value(t.Elem(), depth+1); err != nil {
				return err
			}
		}
		_, _, err := c.token()
		return err
	case reflect.Float64:
		n, ok := token.(json.Number)
		if !ok {
			return c.errorf(at, "want a number, not %s", name(token))
		}
		if _, err := n.Float64(); err != nil {
			return c.errorf(at, "%.60s is out of range", n)
		}
	case reflect.Int, reflect.Int64:
		n, ok := token.(json.Number)
		if !ok {
			return c.errorf(at, "want a whole number, not %s", name(token))
		}
		if _, err := strconv.ParseInt(n.String(), 10, 64); err != nil {
			return c.errorf(at, "want a whole number, not %.60s", n)
		}
	case reflect.String:
		if _, ok := token.(string); !ok {
			return c.errorf(at, "want text, not %s", name(token))
		}
	case reflect.Bool:
		if _, ok := token.(bool); !ok {
			return c.errorf(at, "want true or false, not %s", name(token))
		}
	default:
		return c.errorf(at, "no input has a value of type %s", t)
	}
	return nil
}

// object checks the members of a struct or map after its opening brace.
func (c *checker) object(t reflect.Type, start, depth int) error {
	fields, required := members(t)
	seen := map[string]bool{}
	for c.tokens.More() {
		token, at, err := c.token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return c.errorf(at, "want a name, not %s", name(token))
		}
		of := fields[key]
		if t.Kind() == reflect.Map {
			of = t.Elem()
		}
		if of == nil {
			return c.errorf(at, "unknown field %.60q", key)
		}
		if seen[key] {
			return c.errorf(at, "%.60q stands here a second time", key)
		}
		seen[key] = true
		if err := c.value(of, depth+1); err != nil {
			return err
		}
	}
	for _, key := range required {
		if !seen[key] {
			return c.errorf(start, "%q is missing", key)
		}
	}
	_, _, err := c.token()
	return err
}

// own checks a value whose type decodes itself.
func (c *checker) own(t reflect.Type, nullable bool) error {
	at := c.next()
	var raw json.RawMessage
	if err := c.tokens.Decode(&raw); err != nil {
		return c.errorf(at, "%w", err)
	}
	if string(raw) == "null" {
		if nullable {
			return nil
		}
		return c.errorf(at, "want a value, not null")
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		return c.errorf(at, "%w", err)
	}
	return nil
}

// members returns the fields of a struct by their names in JSON, and which of
// them must be there.
func members(t reflect.Type) (fields map[string]reflect.Type, required []string) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	fields = map[string]reflect.Type{}
	for f := range t.Fields() {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[key] = f.Type
		if options == "" {
			required = append(required, key)
		}
	}
	return fields, required
}

// name says what a token is.
func name(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "a list"
	case string:
		return fmt.Sprintf("%.60q", t)
	default:
		return fmt.Sprintf("%.60v", t)
	}
}
