package spanfile

import (
	"bytes"

	"github.com/trimtab/trimtab/collector/internal/jsonvalue"
)

// parts joins the pieces into which a container runtime cuts long lines of a log, one for each 16
// KiB.
//
//	2024-06-10T06:13:20.000000000Z stdout P {"resource":…      CRI: P is a part, F the last one
//	{"log":"{\"resource\":…","stream":"stdout","time":"…"}     Docker: the last one ends with \n
//
// Source: Kubernetes, CRI logging; moby, daemon/logger/jsonfilelog.
type parts struct{ held []byte }

// join returns the program's line that a log line completes, or is; nil: it continues in the next
// one. A line of no such log is returned unchanged.
func (p *parts) join(line []byte) []byte {
	content, partial, ok := criPart(line)
	if !ok {
		content, partial, ok = dockerPart(line)
		if !ok || !partial && len(p.held) == 0 {
			return line
		}
	}
	if len(p.held)+len(content) > maxValue {
		p.held = p.held[:0]
		return line
	}
	if p.held = append(p.held, content...); partial {
		return nil
	}
	whole := p.held
	p.held = nil
	return bytes.TrimSpace(whole)
}

// criPart returns the program's output in a log line of CRI.
func criPart(line []byte) (content []byte, partial, ok bool) {
	const stamp = len("2006-01-02T15:04:05")
	time, rest, _ := bytes.Cut(line, []byte(" "))
	stream, rest, _ := bytes.Cut(rest, []byte(" "))
	tag, content, _ := bytes.Cut(rest, []byte(" "))
	if len(time) < stamp || time[10] != 'T' || string(stream) != "stdout" && string(stream) != "stderr" {
		return nil, false, false
	}
	tag, _, _ = bytes.Cut(tag, []byte(":"))
	return content, string(tag) == "P", string(tag) == "P" || string(tag) == "F"
}

// dockerPart returns the program's output in a log line of Docker.
func dockerPart(line []byte) (content []byte, partial, ok bool) {
	if !bytes.HasPrefix(line, []byte(`{"log":`)) {
		return nil, false, false
	}
	if n, err := jsonvalue.End(line); err != nil || n != len(line) {
		return nil, false, false
	}
	text, ok := jsonvalue.Value(line).Member("log").Text()
	return []byte(text), len(text) == 0 || text[len(text)-1] != '\n', ok && text != ""
}
