package perf

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/trimtab/trimtab"
)

// The messages between the collector and the process that counts: each a line of JSON.
//
//	process:    Ability                           once, when it begins
//	collector:  {"seq": 7, "groups": [{"path": "shop/checkout", "id": 4711}]}
//	process:    {"seq": 7, "groups": [{"window_ns": …, "software": …, "hardware": …}]}
//
// A group is counted from the first request that names it to the first that does not.

// MaxGroups is the largest number of control groups that are counted.
const MaxGroups = 1000

// maxLine bounds a message: MaxGroups paths of 253 bytes, or as many answers of some 400.
const maxLine = 1 << 20

// group is one control group of a request; the empty path is the whole host.
type group struct {
	Path string `json:"path"`
	// ID differs from that of an earlier group with the same path.
	ID uint64 `json:"id"`
}

type request struct {
	Seq    uint64  `json:"seq"`
	Groups []group `json:"groups"`
}

// answer has the counts of each group of the request, in the same order.
type answer struct {
	Seq    uint64     `json:"seq"`
	Groups []interval `json:"groups"`
}

// readMessage reads one line into v. At the end of the input it is io.EOF.
func readMessage(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return trimtab.Invalidf("message of more than %d bytes", maxLine)
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		break
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil {
		return errors.Join(trimtab.Invalidf("message %.80q", line), err)
	}
	return nil
}

func writeMessage(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if len(b) >= maxLine {
		return trimtab.Invalidf("message of %d bytes, limit %d", len(b), maxLine)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}
