package jsonvalue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth is the deepest nesting of objects and lists that [End] reads.
const MaxDepth = 1000

// ErrCut means that a text ends within a value.
var ErrCut = errors.New("ends within a value")

// SyntaxError says where and why JSON is invalid.
type SyntaxError struct {
	Offset int
	What   string
}

// Error names the cause and the offset.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.What, e.Offset) }

// reader checks the syntax of one value. Which of the open containers are objects is
// a bit each, so that a value of any depth costs nothing.
type reader struct {
	b       []byte
	at      int
	depth   int
	objects [MaxDepth/64 + 1]uint64
}

// End returns the offset behind the JSON value with which b begins, after optional space. If b
// ends before the value does, the error is [ErrCut]: a number is complete only when something
// follows. Anything else is a *SyntaxError.
func End(b []byte) (int, error) {
	r := reader{b: b}
	if err := r.value(); err != nil {
		return 0, err
	}
	for r.depth > 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	return r.at, nil
}

// inObject reports whether the innermost open container is an object.
func (r *reader) inObject() bool { return r.objects[r.depth/64]>>(r.depth%64)&1 == 1 }

// open enters a container.
func (r *reader) open(object bool) error {
	if r.depth == MaxDepth {
		return r.wrong(fmt.Sprintf("nested more than %d deep", MaxDepth))
	}
	r.depth++
	r.objects[r.depth/64] &^= 1 << (r.depth % 64)
	if object {
		r.objects[r.depth/64] |= 1 << (r.depth % 64)
	}
	r.at++
	return nil
}

// next reads the token after a value within a container: its end, or another value.
func (r *reader) next() error {
	c, err := r.peek()
	switch {
	case err != nil:
		return err
	case c == ',':
		r.at++
		if r.inObject() {
			return r.member()
		}
		return r.value()
	case c == '}' && r.inObject(), c == ']' && !r.inObject():
		r.depth--
		r.at++
		return nil
	}
	return r.unexpected()
}

// value reads a value up to its end, or, of a container, up to the end of its first
// value that is none.
func (r *reader) value() error {
	for {
		c, err := r.peek()
		if err != nil {
			return err
		}
		switch c {
		case '{':
			if err := r.open(true); err != nil {
				return err
			}
			if c, err = r.peek(); err == nil && c != '}' {
				err = r.key()
			}
		case '[':
			if err := r.open(false); err != nil {
				return err
			}
			c, err = r.peek()
		case '"':
			return r.text()
		case 't':
			return r.literal("true")
		case 'f':
			return r.literal("false")
		case 'n':
			return r.literal("null")
		default:
			return r.number()
		}
		if err != nil {
			return err
		}
		if c == '}' && r.inObject() || c == ']' && !r.inObject() {
			r.depth--
			r.at++
			return nil
		}
	}
}

// member reads a key and its value.
func (r *reader) member() error {
	if _, err := r.peek(); err != nil {
		return err
	}
	if err := r.key(); err != nil {
		return err
	}
	return r.value()
}

// key reads a key and the colon behind it.
func (r *reader) key() error {
	if r.b[r.at] != '"' {
		return r.unexpected()
	}
	if err := r.text(); err != nil {
		return err
	}
	switch c, err := r.peek(); {
	case err != nil:
		return err
	case c != ':':
		return r.unexpected()
	}
	r.at++
	return nil
}

// peek returns the next byte that is not white space.
func (r *reader) peek() (byte, error) {
	for r.at < len(r.b) {
		switch c := r.b[r.at]; c {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return c, nil
		}
	}
	return 0, ErrCut
}

// text reads a string.
func (r *reader) text() error {
	for at := special(r.b, r.at+1); at < len(r.b); at = special(r.b, at+1) {
		switch c := r.b[at]; c {
		case '"':
			r.at = at + 1
			return nil
		case '\\':
			n, err := escape(r.b[at:])
			if err != nil {
				r.at = at
				return r.known(err)
			}
			at += n - 1
		default:
			r.at = at
			return r.wrong(fmt.Sprintf("%q within a text", c))
		}
	}
	return ErrCut
}

// special returns the offset of the first byte from at that has a meaning within a text: a quote,
// a backslash, or an invalid byte; at least len(b) without one. It reads eight bytes at a time:
// of a word x, x-n borrows in the lowest byte that is under n, and x^n is 0 in those that are n.
func special(b []byte, at int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for at+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[at:])
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		found := ((x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
		if found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
		at += 8
	}
	for at < len(b) && b[at] != '"' && b[at] != '\\' && b[at] >= ' ' {
		at++
	}
	return at
}

// errEscape says that a backslash is followed by an invalid character.
var errEscape = errors.New("unknown escape")

// escape returns the length of an escape sequence.
func escape(b []byte) (int, error) {
	if len(b) < 2 {
		return 0, ErrCut
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(b) {
				return 0, ErrCut
			}
			if c := b[i] | 0x20; !digit(b[i]) && (c < 'a' || c > 'f') {
				return 0, errEscape
			}
		}
		return 6, nil
	}
	return 0, errEscape
}

// literal reads one of JSON's words.
func (r *reader) literal(word string) error {
	for i := range len(word) {
		if r.at+i >= len(r.b) {
			return ErrCut
		}
		if r.b[r.at+i] != word[i] {
			r.at += i
			return r.unexpected()
		}
	}
	r.at += len(word)
	return nil
}

// number reads a number.
func (r *reader) number() error {
	if r.b[r.at] == '-' {
		r.at++
	}
	if r.at < len(r.b) && r.b[r.at] == '0' {
		r.at++
	} else if err := r.digits(); err != nil {
		return err
	}
	if r.at < len(r.b) && r.b[r.at] == '.' {
		r.at++
		if err := r.digits(); err != nil {
			return err
		}
	}
	if r.at < len(r.b) && r.b[r.at]|0x20 == 'e' {
		r.at++
		if r.at < len(r.b) && (r.b[r.at] == '+' || r.b[r.at] == '-') {
			r.at++
		}
		if err := r.digits(); err != nil {
			return err
		}
	}
	if r.at == len(r.b) {
		return ErrCut
	}
	return nil
}

// digits reads one digit or more.
func (r *reader) digits() error {
	from := r.at
	for r.at < len(r.b) && digit(r.b[r.at]) {
		r.at++
	}
	switch {
	case r.at > from:
		return nil
	case r.at == len(r.b):
		return ErrCut
	}
	return r.unexpected()
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// unexpected returns the error for an invalid character.
func (r *reader) unexpected() error {
	return r.wrong(fmt.Sprintf("unexpected %q", r.b[r.at]))
}

// known adds the position to an error.
func (r *reader) known(err error) error {
	if errors.Is(err, ErrCut) {
		return err
	}
	return r.wrong(err.Error())
}

func (r *reader) wrong(what string) error { return &SyntaxError{Offset: r.at, What: what} }
