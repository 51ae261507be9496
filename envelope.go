package trimtab

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EnvelopeVersion is the version of every JSON kind of this build. A reader
// refuses a higher one and must accept all lower ones.
const EnvelopeVersion = 1

// MaxMessageBytes bounds an encoded value: larger ones are refused by Encode
// and Decode with ErrInvalid.
const MaxMessageBytes = 4 << 20

// Origin identifies one publication: Sequence counts from 1 within an
// Incarnation (one life of the process) of a Source. (Source, Incarnation,
// Sequence) is unique, so a repeated delivery can be told from a new value,
// and a gap in Sequence is a counted loss.
type Origin struct {
	Source      string `json:"source"`
	Incarnation uint64 `json:"incarnation"`
	Sequence    uint64 `json:"sequence"`
}

// Envelope is the JSON form of every kind but spans.
type Envelope struct {
	Kind    Kind            `json:"kind"`
	Version int             `json:"version"`
	Origin  Origin          `json:"origin"`
	Value   json.RawMessage `json:"value"`
}

// outgoing is an [Envelope] whose value is encoded in the same pass.
type outgoing struct {
	Kind    Kind   `json:"kind"`
	Version int    `json:"version"`
	Origin  Origin `json:"origin"`
	Value   Value  `json:"value"`
}

// Encode validates v and returns its wire form: an [Envelope] as JSON, or for
// a [SpanFrame] its own bytes (whose origin travels in message headers).
func Encode(v Value, o Origin) ([]byte, error) {
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", v.Kind(), err)
	}
	if f, ok := v.(*SpanFrame); ok {
		return f.Data, nil
	}
	b, err := json.Marshal(outgoing{Kind: v.Kind(), Version: EnvelopeVersion, Origin: o, Value: v})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", v.Kind(), ErrInvalid, err)
	}
	if len(b) > MaxMessageBytes {
		return nil, Invalidf("encode %s: %d bytes, limit %d", v.Kind(), len(b), MaxMessageBytes)
	}
	return b, nil
}

// Decode reads a JSON value of kind want and validates it. Every failure is
// ErrInvalid. Fields that this version does not know are ignored, so that a
// newer publisher can be read. Spans are read with [ReadSpanFrame].
func Decode(want Kind, b []byte) (Value, Origin, error) {
	if len(b) > MaxMessageBytes {
		return nil, Origin{}, Invalidf("decode %s: %d bytes, limit %d", want, len(b), MaxMessageBytes)
	}
	if v, o, ok := decodeOurs(want, b); ok {
		return v, o, nil
	}
	var e Envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, Origin{}, fmt.Errorf("decode %s: %w: %w", want, ErrInvalid, err)
	}
	if info, ok := InfoOf(want); ok && info.Delivery == Local {
		return nil, e.Origin, Invalidf("decode %s: it never travels", want)
	}
	if e.Kind != want {
		return nil, e.Origin, Invalidf("decode %s: message is of kind %.40q", want, e.Kind)
	}
	v, err := DecodeValue(e.Kind, e.Version, e.Value)
	return v, e.Origin, err
}

// decodeOurs reads an envelope that has the form in which Encode prints it:
// {"kind":"sample","version":1,"origin":{…},"value":{…}}. The value is then
// read where it stands, in half the time. Anything else, and anything wrong,
// is left to Decode, which can say what is wrong.
func decodeOurs(want Kind, b []byte) (Value, Origin, bool) {
	var o Origin
	// The mark cannot be inside a text, where each of its quotes had a backslash.
	const mark = `},"value":`
	head := fmt.Appendf(nil, `{"kind":%q,"version":%d,"origin":{`, want, EnvelopeVersion)
	origin, found := bytes.CutPrefix(b, head)
	at := bytes.Index(origin, []byte(mark))
	if !found || at < 0 || b[len(b)-1] != '}' {
		return nil, o, false
	}
	if info, ok := InfoOf(want); ok && info.Delivery == Local {
		return nil, o, false
	}
	from := len(head) - 1
	if json.Unmarshal(b[from:len(head)+at+1], &o) != nil {
		return nil, o, false
	}
	// More members after the value would make it two values, which is an error.
	v, err := DecodeValue(want, EnvelopeVersion, b[len(head)+at+len(mark):len(b)-1])
	return v, o, err == nil
}

// DecodeValue reads and validates what an [Envelope] of that kind and version
// holds. Every failure is ErrInvalid. It takes no more memory than 16 times
// MaxMessageBytes.
func DecodeValue(kind Kind, version int, raw []byte) (Value, error) {
	info, ok := InfoOf(kind)
	switch {
	case !ok || kind == KindSpans:
		return nil, Invalidf("decode %.40q: no such JSON kind", kind)
	case version < 1 || version > EnvelopeVersion:
		return nil, Invalidf("decode %s: version %d, this build reads 1 to %d", kind, version, EnvelopeVersion)
	case len(raw) == 0 || string(raw) == "null":
		return nil, Invalidf("decode %s: no value", kind)
	case len(raw) > MaxMessageBytes:
		return nil, Invalidf("decode %s: %d bytes, limit %d", kind, len(raw), MaxMessageBytes)
	}
	if n := listed(raw); n > maxListed {
		return nil, Invalidf("decode %s: lists of %d elements, limit %d", kind, n, maxListed)
	}
	v := info.New()
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("decode %s: %w: %w", kind, ErrInvalid, err)
	}
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	return v, nil
}
