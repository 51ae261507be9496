package spanfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

const (
	// maxFirstLine is how far the end of the first line is searched, in bytes.
	maxFirstLine = 16 << 20
	// triedLines is how many lines are tried if the first one is not a document.
	triedLines = 16
	// hopeless is the number of invalid lines after which a file is given up.
	hopeless = 100_000
)

// inLines reports whether the file has one document a line: whether its first line is one, or, if
// that is a fragment or something else, one of those that follow. A document that continues in
// the second line means no.
func (d *decoder) inLines() bool {
	for d.end == nil && bytes.IndexByte(d.buf[d.at:], '\n') < 0 && len(d.buf)-d.at < maxFirstLine {
		d.more()
	}
	tried := 0
	for line := range bytes.Lines(d.buf[d.at:]) {
		whole := line[len(line)-1] == '\n'
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		n, err := jsonvalue.End(line)
		switch {
		case !whole && !errors.Is(d.end, io.EOF):
			return false
		case tried == 0 && begins(line) && errors.Is(err, jsonvalue.ErrCut):
			if _, err := jsonvalue.End(d.buf[d.at:]); err == nil || errors.Is(err, jsonvalue.ErrCut) {
				return false // the document continues in the second line
			}
		case tried == 0 && begins(line) && len(bytes.Trim(line[n:], " ,")) == 0:
			return whole
		case isPart(line):
			return true
		case tried > 0 && isDocument(line) || jsonIn(line) != nil && isDocument(jsonIn(line)):
			return true
		}
		if tried++; tried == triedLines {
			return false
		}
	}
	return false
}

// isPart reports whether a line is of a container's log, with a document in it.
func isPart(line []byte) bool {
	content, _, ok := criPart(line)
	return ok && len(content) > 0 && (content[0] == '{' || content[0] == '[')
}

// begins reports whether a line may begin a document.
func begins(line []byte) bool { return line[0] == '{' || line[0] == '[' }

// ends reports whether a line may end a document.
func ends(line []byte) bool { return line[len(line)-1] == '}' || line[len(line)-1] == ']' }

// isDocument reports whether a line is an object that is known.
func isDocument(line []byte) bool {
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	if n, err := jsonvalue.End(line); err != nil || n != len(line) {
		return false
	}
	k, _, err := shape(line, true)
	return err == nil && k != unknown
}

// jsonIn returns the object at the end of a line, as in logs; nil: none.
func jsonIn(line []byte) []byte {
	at := bytes.IndexByte(line, '{')
	if at < 0 {
		return nil
	}
	line = bytes.TrimSpace(line[at:])
	if n, err := jsonvalue.End(line); err != nil || n != len(line) {
		return nil
	}
	return line
}

// passed counts lines that were skipped, with the error of the first.
type passed struct {
	n   int
	why error
}

func (p *passed) add(why error) {
	if p.n++; p.n == 1 {
		p.why = why
	}
}

// lines reads one or several documents a line. It skips a line that is cut or no document; other
// errors concern the file.
func (d *decoder) lines() error {
	var broken, foreign, words passed
	read := 0
	var log parts
	for {
		line, last, err := d.nextLine()
		if err != nil {
			return err
		}
		if text := log.join(bytes.TrimSpace(line)); len(text) > 0 {
			switch err := d.readLine(text); {
			case err == nil:
				read++
			case errors.As(err, new(errAlien)):
				foreign.add(err)
			case errors.As(err, new(errBroken)) && (begins(text) || ends(text)):
				broken.add(err)
			case errors.As(err, new(errBroken)):
				words.add(err)
			default:
				return err
			}
		}
		d.advance(len(line))
		if last || read == 0 && broken.n+foreign.n+words.n == hopeless {
			break
		}
	}
	if len(log.held) > 0 {
		broken.add(d.cut(io.EOF))
	}
	for _, p := range []passed{broken, foreign, words} {
		if p.n > 0 && read == 0 {
			return p.why
		}
	}
	if broken.n > read+1 {
		return fmt.Errorf("%d of %d lines are no whole document: %w", broken.n, broken.n+read, broken.why)
	}
	d.report(&broken, "is cut", "are cut or no whole JSON")
	d.report(&foreign, "has no spans", "have no spans")
	d.report(&words, "is no JSON", "are no JSON")
	if !errors.Is(d.end, io.EOF) {
		if !isCut(d.end) {
			return d.cut(d.end)
		}
		d.notes = append(d.notes, reasonOf(d.cut(d.end)))
	}
	return nil
}

// report adds a note about skipped lines.
func (d *decoder) report(p *passed, one, several string) {
	switch p.n {
	case 0:
	case 1:
		d.notes = append(d.notes, fmt.Sprintf("a line %s and is passed over: %s", one, reasonOf(p.why)))
	default:
		d.notes = append(d.notes, fmt.Sprintf("%d lines %s and are passed over, the first of them: %s", p.n, several, reasonOf(p.why)))
	}
}

// errBroken says that a line is not a complete document.
type errBroken struct{ error }

// Unwrap returns the cause.
func (e errBroken) Unwrap() error { return e.error }

// nextLine returns the line that follows, and whether it is the last one.
func (d *decoder) nextLine() (line []byte, last bool, err error) {
	for searched := 0; ; {
		piece := d.buf[d.at:]
		if n := bytes.IndexByte(piece[searched:], '\n'); n >= 0 {
			return piece[:searched+n+1], false, nil
		}
		if searched = len(piece); searched >= maxValue {
			return nil, false, d.locate(0, fmt.Sprintf("a line of more than %d MiB", maxValue>>20))
		}
		if !d.more() {
			if errors.Is(d.end, errTooLong) {
				return nil, false, d.cut(d.end)
			}
			return d.buf[d.at:], true, nil
		}
	}
}

// readLine reads the documents of a line. It checks the syntax first, so that nothing is taken
// from a cut document.
func (d *decoder) readLine(line []byte) error {
	outer := d.text
	defer func() { d.text = outer }()
	if !begins(line) {
		if found := jsonIn(line); found != nil && isDocument(found) {
			line = found
		}
	}
	d.text = outer.within(line)
	for {
		switch c, err := d.peek(); {
		case err != nil:
			return nil // the end
		case c == ',': // as between the elements of a list
			d.advance(1)
			continue
		}
		k, n, err := d.look()
		if err != nil {
			return errBroken{err}
		}
		if k != container {
			if err = d.whole(k, n); err != nil {
				return err
			}
			continue
		}
		if _, err := jsonvalue.End(d.buf[d.at:]); err != nil {
			return errBroken{d.goOn(err)}
		}
		if err := d.document(); err != nil {
			return err
		}
	}
}

// look returns the kind of the next object in a line.
func (d *decoder) look() (kind, int, error) {
	switch d.buf[d.at] {
	case '{':
		k, n, err := shape(d.buf[d.at:], true)
		if err != nil {
			err = d.goOn(err)
		}
		return k, n, err
	case '[':
		return container, 0, nil
	}
	return unknown, 0, d.locate(0, fmt.Sprintf("neither an object nor a list of JSON begins with %.40q", d.buf[d.at:min(len(d.buf), d.at+40)]))
}
