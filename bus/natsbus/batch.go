package natsbus

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/speculation"
)

// Values of a Shed kind that wait to be sent travel as one message: an agent has three samples of
// each of its groups at a time, which would be tens of thousands of messages a second from 1,000
// agents of 20 groups. Such a message is on the subject trimtab.<kind>.=many, whose last token is
// the escape of no key ([bus.EscapeKey]). Its data, compressed, has a line for each value:
//
//	KEY ORIGIN JSON\n
//
// KEY is the last token of the value's own subject, ORIGIN its headerOrigin. JSON begins with a
// brace and has no line ends. So each value keeps its number in its own sequence, and losses are
// counted as if each had travelled alone.
const (
	manyKey = "=many"
	// gatherFor is how long a value waits for others to travel with.
	gatherFor = 2 * time.Millisecond
	// maxBatch bounds the lines that are sent in one message, maxBatchRead those
	// that are read, in bytes.
	maxBatch, maxBatchRead = 256 << 10, 1 << 20
	// maxLines bounds their number, so that no message keeps its reader for long.
	maxLines = 4096
)

// shed is the encoded form of one value of a Shed kind.
type shed struct {
	// prefix is the subject up to the key, including the dot.
	prefix, key, origin string
	data                []byte
}

func kindPrefix(k trimtab.Kind) string { return "trimtab." + string(k) + "." }

func (s *shed) subject() string { return s.prefix + s.key }

// message returns the message of a value that is sent alone.
func (s *shed) message() *nats.Msg {
	return &nats.Msg{Subject: s.subject(), Header: nats.Header{headerOrigin: {s.origin}}, Data: s.data}
}

// size estimates the bytes that the value takes in a batch.
func (s *shed) size() int { return len(s.key) + len(s.origin) + len(s.data) + 3 }

// byItself reports whether values of the kind with that prefix never travel in batches: their
// subject must show the key, by which servers decide who may publish and read them.
func byItself(prefix string) bool {
	return prefix == kindPrefix(speculation.KindMachine) || prefix == kindPrefix(speculation.KindPlacements)
}

// together packs values into messages: neighbours of one kind travel as one, up to maxBatch. The
// order stays.
func together(all []shed) (out []*nats.Msg) {
	for len(all) > 0 {
		n, size := 1, all[0].size()
		for n < min(len(all), maxLines) && all[n].prefix == all[0].prefix && !byItself(all[0].prefix) && size+all[n].size() <= maxBatch {
			size += all[n].size()
			n++
		}
		if n == 1 {
			out = append(out, all[0].message())
		} else {
			out = append(out, batch(all[:n], size))
		}
		all = all[n:]
	}
	return out
}

// batch is the message of several values of one kind.
func batch(all []shed, size int) *nats.Msg {
	lines := make([]byte, 0, size)
	for i := range all {
		lines = append(append(lines, all[i].key...), ' ')
		lines = append(append(lines, all[i].origin...), ' ')
		lines = append(append(lines, all[i].data...), '\n')
	}
	m := &nats.Msg{Subject: all[0].prefix + manyKey, Header: nats.Header{}, Data: lines}
	pack(m)
	return m
}

// apart calls take with each value in a message that carries many, in order. At the first invalid
// one it stops with an error that is trimtab.ErrInvalid.
func apart(k trimtab.Kind, m *nats.Msg, take func(*shed)) error {
	n, err := unpackedLen(m.Header, m.Data)
	if err == nil && n > maxBatchRead {
		err = trimtab.Invalidf("%d bytes, limit %d", n, maxBatchRead)
	}
	var lines []byte
	if err == nil {
		lines, err = unpack(m.Header, m.Data)
	}
	if err != nil {
		return fmt.Errorf("read several of %s: %w", k, err)
	}
	for at := 1; len(lines) > 0; at++ {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		// Neither a key nor an origin has a brace: it is escaped in both.
		if at > maxLines {
			return trimtab.Invalidf("read several of %s: more than %d", k, maxLines)
		}
		from := max(0, bytes.IndexByte(line, '{'))
		key, origin, _ := strings.Cut(strings.TrimSuffix(string(line[:from]), " "), " ")
		if origin == "" || key == manyKey {
			return trimtab.Invalidf("read several of %s: line %d is not KEY ORIGIN JSON", k, at)
		}
		take(&shed{kindPrefix(k), key, origin, line[from:]})
	}
	return nil
}

// Read passes the values of a Shed kind in a message, one or many, to take, for programs that
// observe the bus without a [Bus]. An error is trimtab.ErrInvalid.
func Read(k trimtab.Kind, m *nats.Msg, take func(trimtab.Value, trimtab.Origin)) (err error) {
	one := func(data []byte) {
		v, o, bad := codec.Decode(k, data)
		if bad != nil {
			err = errors.Join(err, bad)
			return
		}
		take(v, o)
	}
	if !strings.HasSuffix(m.Subject, "."+manyKey) {
		one(m.Data)
		return err
	}
	bad := apart(k, m, func(v *shed) { one(v.data) })
	return errors.Join(bad, err)
}
