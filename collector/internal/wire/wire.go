// Package wire walks protobuf messages in place, for readers that want a few
// fields of many messages. It builds nothing: a message of any shape costs no
// more memory than its bytes.
//
//	err := wire.Fields(b, func(tag uint64, value []byte, number uint64) error {
//		switch tag { case 1<<3 | wire.Bytes: … }
//	})
package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trimtab/trimtab"
)

// The wire types in a tag, number<<3 | type.
const (
	Number  = 0
	Fixed64 = 1
	Bytes   = 2
)

// Fields calls f for each field of a message, with the payload of a
// length-delimited field, the eight bytes of a fixed64, or the number of a
// varint. A message that is malformed, unknown fields included, is ErrInvalid.
func Fields(b []byte, f func(tag uint64, value []byte, number uint64) error) error {
	for len(b) > 0 {
		tag, n := Varint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
			return Malformed("tag")
		}
		b = b[n:]
		var value []byte
		var number uint64
		switch tag & 7 {
		case Bytes:
			if value, b = Delimited(b); value == nil {
				return Malformed("length")
			}
		case Number:
			if number, n = Varint(b); n <= 0 {
				return Malformed("varint")
			}
			b = b[n:]
		default:
			if n = Skip(tag, b); n < 0 {
				return Malformed("field")
			}
			value, b = b[:n:n], b[n:]
		}
		if err := f(tag, value, number); err != nil {
			return err
		}
	}
	return nil
}

// Malformed returns the error for a message with such a fault.
func Malformed(what string) error { return trimtab.Invalidf("read protobuf: malformed %s", what) }

// Varint returns the number at the start of b and its length, <= 0 when there
// is none.
func Varint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	if len(b) > 1 && b[1] < 0x80 {
		return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
	}
	return protowire.ConsumeVarint(b)
}

// Delimited splits a length-delimited payload off b; value is nil when b is
// cut off, and never nil otherwise.
func Delimited(b []byte) (value, rest []byte) {
	size, n := Varint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil
	}
	end := n + int(size)
	return b[n:end:end], b[end:]
}

// Skip returns the length of the value of a field, < 0 if it is malformed.
func Skip(tag uint64, b []byte) int {
	number, kind := protowire.DecodeTag(tag)
	if number < protowire.MinValidNumber {
		return -1
	}
	return protowire.ConsumeFieldValue(number, kind, b)
}
