package colocate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/trimtab/trimtab"
)

// maxFile bounds an environment, in bytes.
const maxFile = 16 << 20

// Read reads an environment as JSON and validates it. Its errors name the file, and
// the line where the form is at fault, and are trimtab.ErrInvalid.
func Read(r io.Reader, file string) (*Environment, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(text) > maxFile {
		return nil, trimtab.Invalidf("read %s: more than %d MiB", file, maxFile>>20)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	e := &Environment{}
	if err := d.Decode(e); err != nil {
		at := d.InputOffset()
		var form *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &form):
			at = form.Offset
		case errors.As(err, &kind):
			at = kind.Offset
		}
		return nil, trimtab.Invalidf("read %s:%d: %w", file, line(text, at), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, trimtab.Invalidf("read %s:%d: want one environment, and nothing after it", file, line(text, d.InputOffset()))
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return e, nil
}

// line is that of a byte.
func line(text []byte, at int64) int {
	return 1 + bytes.Count(text[:min(max(0, at), int64(len(text)))], []byte("\n"))
}
