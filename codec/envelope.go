package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/topic"
)

// Version is that of every JSON kind of this build. A reader refuses a higher
// one and must accept all lower ones: version1.go reads those of version 1.
const Version = 2

// MaxBytes limits an encoded value: Encode and Decode refuse larger ones with trimtab.ErrInvalid.
const MaxBytes = 4 << 20

// Envelope is the JSON form of every kind but spans.
type Envelope struct {
	Kind    trimtab.Kind    `json:"kind"`
	Version int             `json:"version"`
	Origin  trimtab.Origin  `json:"origin"`
	Value   json.RawMessage `json:"value"`
}

// outgoing is an [Envelope] whose value is encoded in the same pass.
type outgoing struct {
	Kind    trimtab.Kind   `json:"kind"`
	Version int            `json:"version"`
	Origin  trimtab.Origin `json:"origin"`
	Value   trimtab.Value  `json:"value"`
}

// Encode validates v and returns its wire form: an [Envelope] as JSON, or for
// a [trimtab.SpanFrame] its own bytes (whose origin travels in message headers).
func Encode(v trimtab.Value, o trimtab.Origin) ([]byte, error) {
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", v.Kind(), err)
	}
	if f, ok := v.(*trimtab.SpanFrame); ok {
		if _, err := frameBounds(f.Data); err != nil {
			return nil, fmt.Errorf("encode %s: %w", v.Kind(), err)
		}
		return f.Data, nil
	}
	b, err := json.Marshal(outgoing{Kind: v.Kind(), Version: Version, Origin: o, Value: v})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w: %w", v.Kind(), trimtab.ErrInvalid, err)
	}
	if len(b) > MaxBytes {
		return nil, trimtab.Invalidf("encode %s: %d bytes, limit %d", v.Kind(), len(b), MaxBytes)
	}
	return b, nil
}

// Decode reads a JSON value of kind want and validates it. Every failure is
// trimtab.ErrInvalid. Fields that this version does not know are ignored, so that a
// newer publisher can be read. Spans are read with [ReadFrame].
func Decode(want trimtab.Kind, b []byte) (trimtab.Value, trimtab.Origin, error) {
	if len(b) > MaxBytes {
		return nil, trimtab.Origin{}, trimtab.Invalidf("decode %s: %d bytes, limit %d", want, len(b), MaxBytes)
	}
	if v, o, ok := decodeOurs(want, b); ok {
		return v, o, nil
	}
	var e Envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, trimtab.Origin{}, fmt.Errorf("decode %s: %w: %w", want, trimtab.ErrInvalid, err)
	}
	if info, ok := topic.Of(want); ok && info.Delivery == topic.Local {
		return nil, e.Origin, trimtab.Invalidf("decode %s: it never travels", want)
	}
	if e.Kind != want {
		return nil, e.Origin, trimtab.Invalidf("decode %s: message is of kind %.40q", want, e.Kind)
	}
	v, err := DecodeValue(e.Kind, e.Version, e.Value)
	return v, e.Origin, err
}

// Older reports whether an encoded value that Decode reads is of an older version
// than this build writes. What this build wrote is known by its first bytes.
func Older(want trimtab.Kind, b []byte) bool {
	if bytes.HasPrefix(b, fmt.Appendf(nil, `{"kind":%q,"version":%d,`, want, Version)) {
		return false
	}
	var e struct {
		Version int `json:"version"`
	}
	return json.Unmarshal(b, &e) == nil && e.Version < Version
}

// decodeOurs reads an envelope in the form that Encode prints:
// {"kind":"sample","version":2,"origin":{…},"value":{…}}. It decodes the value in place, in half
// the time. Any other form, and any error, is left to Decode, which reports what is wrong.
func decodeOurs(want trimtab.Kind, b []byte) (trimtab.Value, trimtab.Origin, bool) {
	var o trimtab.Origin
	// The mark cannot be inside a text, where each of its quotes had a backslash.
	const mark = `},"value":`
	head := fmt.Appendf(nil, `{"kind":%q,"version":%d,"origin":{`, want, Version)
	origin, found := bytes.CutPrefix(b, head)
	at := bytes.Index(origin, []byte(mark))
	if !found || at < 0 || b[len(b)-1] != '}' {
		return nil, o, false
	}
	if info, ok := topic.Of(want); ok && info.Delivery == topic.Local {
		return nil, o, false
	}
	from := len(head) - 1
	if json.Unmarshal(b[from:len(head)+at+1], &o) != nil {
		return nil, o, false
	}
	// More members after the value would make it two values, which is an error.
	v, err := DecodeValue(want, Version, b[len(head)+at+len(mark):len(b)-1])
	return v, o, err == nil
}

// DecodeValue reads and validates what an [Envelope] of that kind and version
// holds. Every failure is trimtab.ErrInvalid. It takes no more memory than 16 times
// MaxBytes.
func DecodeValue(kind trimtab.Kind, version int, raw []byte) (trimtab.Value, error) {
	info, ok := topic.Of(kind)
	switch {
	case !ok || kind == trimtab.KindSpans:
		return nil, trimtab.Invalidf("decode %.40q: no such JSON kind", kind)
	case version < 1 || version > Version:
		return nil, trimtab.Invalidf("decode %s: version %d, this build reads 1 to %d", kind, version, Version)
	case len(raw) == 0 || string(raw) == "null":
		return nil, trimtab.Invalidf("decode %s: no value", kind)
	case len(raw) > MaxBytes:
		return nil, trimtab.Invalidf("decode %s: %d bytes, limit %d", kind, len(raw), MaxBytes)
	}
	if n := listed(raw); n > maxListed {
		return nil, trimtab.Invalidf("decode %s: lists of %d elements, limit %d", kind, n, maxListed)
	}
	v, unmarshal := info.New(), func(raw []byte, v trimtab.Value) error { return json.Unmarshal(raw, v) }
	if version == 1 {
		unmarshal = unmarshal1
	}
	if err := unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("decode %s: %w: %w", kind, trimtab.ErrInvalid, err)
	}
	nameKnobs(raw, v)
	if v.Kind() != kind {
		return nil, trimtab.Invalidf("decode %s: what it holds is a %s", kind, v.Kind())
	}
	if err := v.Validate(); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	return v, nil
}
