package collector

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// ReadID copies the id of len(out) bytes that b encodes. It accepts the bytes themselves and two
// mistakes of senders that are unambiguous: the hexadecimal digits as text, and these digits
// decoded as if they were base64, as a protobuf library does. ok is false for anything else.
func ReadID(out, b []byte) (ok bool) {
	switch n := len(out); len(b) {
	case n:
		copy(out, b)
		return true
	case 2 * n:
	case n * 3 / 2:
		b = base64.StdEncoding.AppendEncode(nil, b)
	default:
		return false
	}
	_, err := hex.Decode(out, b)
	return err == nil
}

// ReadIDText copies the id of len(out) bytes that a text encodes: hexadecimal digits, as in
// OTLP's JSON, or base64, as protobuf's JSON encodes bytes. If a text could be both, such as too
// few hexadecimal digits, ok is false.
func ReadIDText(out []byte, text string) (ok bool) {
	n := len(out)
	if len(text) == 2*n {
		if _, err := hex.Decode(out, []byte(text)); err == nil {
			return true
		}
	}
	encoding, digits := base64.RawStdEncoding, strings.TrimRight(text, "=")
	if len(digits) == len(text) && strings.Trim(text, "0123456789abcdefABCDEF") == "" || len(digits) > 3*n {
		return false
	}
	if strings.ContainsAny(digits, "-_") {
		encoding = base64.RawURLEncoding
	}
	b, err := encoding.DecodeString(digits)
	if err != nil || len(b) == n*3/2 {
		return false
	}
	return ReadID(out, b)
}

// ReadPaddedID copies an id of up to 2·len(out) hexadecimal digits, padded on the
// left as Jaeger and Zipkin allow; the empty text is the zero id.
func ReadPaddedID[T string | []byte](out []byte, text T) (ok bool) {
	const most = 32
	var digits [most]byte
	n := 2 * len(out)
	if len(text) > n || n > most {
		return false
	}
	for i := range n - len(text) {
		digits[i] = '0'
	}
	copy(digits[n-len(text):], text)
	_, err := hex.Decode(out, digits[:n])
	return err == nil
}
