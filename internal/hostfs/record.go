package hostfs

import (
	"encoding/binary"
	"hash/crc32"
)

// The form of one record, numbers little-endian:
//
//	offset  size
//	0       4     magic "tjr2"
//	4       1     operation
//	5       8     number, ascending over the life of the journal
//	13      2     length of the key, k
//	15      4     length of the value, v
//	19      4     CRC-32C of bytes 0 to 18
//	23      4     CRC-32C of bytes 0 to 18, key and value
//	27      k     key
//	27+k    v     value
//
// The header has a checksum of its own so that a wrong length is found without reading what it
// points to. The second checksum includes the header: a write that stops behind the first must
// not make a new record of an old body. With the magic "tjr1", of earlier builds, it does not.
const (
	recordMagic  = "tjr2"
	earlierMagic = "tjr1"
	recordHeader = 27
	// summed is the number of header bytes that the header's checksum covers.
	summed = 19
	// MaxRecord bounds key and value of one record together.
	MaxRecord = 64 << 10
)

// operation is the change that a record makes to its key.
type operation byte

const (
	opPut    operation = 1
	opDelete operation = 2
)

// record is one record as read.
type record struct {
	op     operation
	number uint64
	key    string
	value  []byte
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// appendRecord appends the wire form of r to b.
func appendRecord(b []byte, r record) []byte {
	head := len(b)
	b = append(b, recordMagic...)
	b = append(b, byte(r.op))
	b = binary.LittleEndian.AppendUint64(b, r.number)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.value)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[head:], castagnoli()))
	sum := crc32.Checksum(b[head:head+summed], castagnoli())
	sum = crc32.Update(crc32.Update(sum, castagnoli(), []byte(r.key)), castagnoli(), r.value)
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = append(b, r.key...)
	return append(b, r.value...)
}

// readRecord reads the record at the beginning of b; n is its length, 0 if there is no complete
// one.
func readRecord(b []byte) (r record, n int) {
	if len(b) < recordHeader || string(b[:4]) != recordMagic && string(b[:4]) != earlierMagic {
		return record{}, 0
	}
	sum := crc32.Checksum(b[:summed], castagnoli())
	if sum != binary.LittleEndian.Uint32(b[summed:]) {
		return record{}, 0
	}
	if string(b[:4]) == earlierMagic {
		sum = 0
	}
	k, v := int(binary.LittleEndian.Uint16(b[13:])), int(binary.LittleEndian.Uint32(b[15:]))
	op := operation(b[4])
	if k+v > MaxRecord || recordHeader+k+v > len(b) || op < opPut || op > opDelete {
		return record{}, 0
	}
	body := b[recordHeader : recordHeader+k+v]
	if crc32.Update(sum, castagnoli(), body) != binary.LittleEndian.Uint32(b[23:]) {
		return record{}, 0
	}
	return record{
		op: op, number: binary.LittleEndian.Uint64(b[5:]),
		key: string(body[:k]), value: append([]byte{}, body[k:]...),
	}, recordHeader + k + v
}

// scan reads every record that is whole, wherever it starts. damaged counts
// the stretches between them that are not empty; end is where the last byte
// that is not zero ends.
func scan(b []byte) (records []record, damaged, end int) {
	inside := false
	for i := 0; i < len(b); {
		// Most of a journal is empty.
		if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == 0 {
			i += 8
			continue
		}
		if r, n := readRecord(b[i:]); n > 0 {
			records, inside = append(records, r), false
			i += n
			end = i
			continue
		}
		if b[i] != 0 {
			if !inside {
				damaged++
			}
			inside, end = true, i+1
		}
		i++
	}
	return records, damaged, end
}
