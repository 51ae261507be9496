package spanfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

const (
	// maxValue bounds a value that must be in memory whole: a trace in Jaeger's form, a resource,
	// a line.
	maxValue = 64 << 20
	// firstBuffer is the size of a file's first buffer, in bytes.
	firstBuffer = 256 << 10
)

// errCut means that a file ends within a value.
var errCut = errors.New("ends within a value: the rest of it is missing")

// text is a file as UTF-8, a part of which is in memory.
type text struct {
	in io.Reader
	// buf[at:] was not read yet.
	buf []byte
	at  int
	// offset and line are the position of buf[at] in the file; lines count from 1.
	offset int64
	line   int
	// end is why no more data follows buf: io.EOF, or an error of the input.
	end error
	// left is how many bytes may still be read.
	left int64
}

// within returns a piece of t as a text of its own.
func (t *text) within(piece []byte) *text {
	return &text{buf: piece, offset: t.offset, line: t.line, end: io.EOF}
}

// more reads more data into buf; false: none follows.
func (t *text) more() bool {
	if t.end != nil {
		return false
	}
	held := len(t.buf) - t.at
	// A value may fill the buffer, and no more than that is ever needed.
	if size := min(max(firstBuffer, 2*held), maxValue+firstBuffer); cap(t.buf) < size {
		t.buf = append(make([]byte, 0, size), t.buf[t.at:]...)
	} else {
		t.buf = t.buf[:copy(t.buf[:cap(t.buf)], t.buf[t.at:])]
	}
	t.at = 0
	room := t.buf[held:cap(t.buf)]
	if t.left < int64(len(room)) {
		room = room[:t.left+1] // one byte more than allowed shows that it is too long
	}
	n, err := io.ReadFull(t.in, room)
	t.buf = t.buf[:held+n]
	switch t.left -= int64(n); {
	case t.left < 0:
		t.buf, t.end = t.buf[:held], errTooLong
	case err == nil:
	case errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, new(*inputError)), errors.Is(err, io.EOF):
		t.end = io.EOF
	default:
		t.end = err
	}
	return n > 0 && !errors.Is(t.end, errTooLong)
}

// errTooLong means that a file has more than may be read of it.
var errTooLong = errors.New("the file is longer than what is read of one: give its parts one by one")

// advance moves on by n bytes.
func (t *text) advance(n int) {
	t.line += bytes.Count(t.buf[t.at:t.at+n], []byte{'\n'})
	t.offset += int64(n)
	t.at += n
}

// peek goes to the next byte that is no space and returns it; io.EOF: there is none.
// RFC 7464's separator of texts counts as space.
func (t *text) peek() (byte, error) {
	for {
		for i, c := range t.buf[t.at:] {
			if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1e {
				t.advance(i)
				return c, nil
			}
		}
		t.advance(len(t.buf) - t.at)
		if !t.more() {
			return 0, t.end
		}
	}
}

// token reads one byte, which must be c.
func (t *text) token(c byte) error {
	switch found, err := t.peek(); {
	case err != nil:
		return t.cut(err)
	case found != c:
		return t.locate(0, fmt.Sprintf("unexpected %q", found))
	}
	t.advance(1)
	return nil
}

// value returns the value that follows, which is valid until the next call.
func (t *text) value() (jsonvalue.Value, error) {
	if _, err := t.peek(); err != nil {
		return nil, t.cut(err)
	}
	for {
		n, err := jsonvalue.End(t.buf[t.at:])
		if err == nil {
			v := jsonvalue.Value(t.buf[t.at : t.at+n : t.at+n])
			t.advance(n)
			return v, nil
		}
		if err := t.goOn(err); err != nil {
			return nil, err
		}
	}
}

// goOn reads more if the error is that more is needed.
func (t *text) goOn(err error) error {
	var wrong *jsonvalue.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return t.locate(wrong.Offset, wrong.What)
	case len(t.buf)-t.at >= maxValue:
		return t.locate(0, fmt.Sprintf("a value of more than %d MiB", maxValue>>20))
	case !t.more():
		return t.cut(t.end)
	}
	return nil
}

// cut returns the error that the text ends too early.
func (t *text) cut(end error) error {
	if errors.Is(end, io.EOF) {
		end = errCut
	}
	at := len(t.buf)
	line := t.line + bytes.Count(t.buf[t.at:], []byte{'\n'})
	return fmt.Errorf("line %d, byte %d: %w: %w", line, t.offset+int64(at-t.at), end, trimtab.ErrInvalid)
}

// locate returns an error with the position ahead bytes after the current one.
func (t *text) locate(ahead int, what string) error {
	piece := t.buf[t.at:]
	ahead = min(ahead, len(piece))
	line := t.line + bytes.Count(piece[:ahead], []byte{'\n'})
	return trimtab.Invalidf("line %d, byte %d: %s", line, t.offset+int64(ahead), what)
}

// members calls f at the value of each member of the object that follows, which f must
// read.
func (t *text) members(f func(key string, first byte) error) error {
	return t.container('{', '}', func() error {
		key, err := t.value()
		if err != nil {
			return err
		}
		name, ok := key.Text()
		if !ok {
			return t.locate(0, "a key that is no text")
		}
		if err := t.token(':'); err != nil {
			return err
		}
		first, err := t.peek()
		if err != nil {
			return t.cut(err)
		}
		return f(name, first)
	})
}

// elements calls f at each element of the list that follows, which f must read.
func (t *text) elements(f func() error) error { return t.container('[', ']', f) }

// container reads the elements between two brackets.
func (t *text) container(open, end byte, f func() error) error {
	if err := t.token(open); err != nil {
		return err
	}
	c, err := t.peek()
	if err == nil && c == end {
		t.advance(1)
		return nil
	}
	for {
		if err != nil {
			return t.cut(err)
		}
		if err = f(); err != nil {
			return err
		}
		if c, err = t.peek(); err != nil {
			return t.cut(err)
		}
		if c == end {
			t.advance(1)
			return nil
		}
		if err = t.token(','); err != nil {
			return err
		}
	}
}
