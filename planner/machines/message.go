package machines

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// The first byte of a message: the version of the form, and the kind.
const (
	form           = 1 << 4
	kindCandidates = form + 1 // from the aggregator to all, each round
	kindFull       = form + 2 // to a job manager that asks
	kindRequest    = form + 3 // from a job manager
)

// list names one list of machines.
type list struct {
	// life is the life of the aggregator that made it, version ver_m.
	life, version uint64
	// digest is of its names: versions say which list is newer, the digest
	// whether it is the same.
	digest uint64
	n      int
}

// same says whether two lists have the same names in the same order. A list
// that a restarted aggregator makes again need not be sent again.
func (l list) same(as list) bool { return l.digest == as.digest && l.n == as.n }

// message is the content of every message: one with candidates has no names, a request has neither
// names nor candidates.
type message struct {
	kind       byte
	list       list
	version    uint64 // ver_c
	candidates []uint32
	ids        []string
}

// digest returns the first 8 bytes of a SHA-256 over the names.
func digest(ids []string) uint64 {
	h, size := sha256.New(), [1]byte{}
	for _, id := range ids {
		size[0] = byte(len(id)) // at most MaxName
		h.Write(size[:])
		h.Write([]byte(id))
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// encode writes a message, with a checksum at the end.
func (m *message) encode() []byte {
	b := []byte{m.kind}
	b = binary.AppendUvarint(b, m.list.life)
	b = binary.AppendUvarint(b, m.list.version)
	b = binary.LittleEndian.AppendUint64(b, m.list.digest)
	b = binary.AppendUvarint(b, uint64(m.list.n))
	if m.kind != kindRequest {
		b = binary.AppendUvarint(b, m.version)
		b = appendVector(b, m.list.n, m.candidates)
	}
	if m.kind == kindFull {
		size := len(b)
		for _, id := range m.ids {
			size += len(id) + 1
		}
		b = slices.Grow(b, size-len(b)+crc32.Size)
		for _, id := range m.ids {
			b = append(append(b, byte(len(id))), id...)
		}
	}
	return seal(b)
}

// seal appends the checksum.
func seal(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }

// decode reads a message. It allocates no more than 40 bytes for each byte of
// it, whatever it claims.
func decode(b []byte) (*message, error) {
	if len(b) < 1+crc32.Size {
		return nil, trimtab.Invalidf("message of %d bytes", len(b))
	}
	body, sum := b[:len(b)-crc32.Size], binary.LittleEndian.Uint32(b[len(b)-crc32.Size:])
	if crc32.ChecksumIEEE(body) != sum {
		return nil, trimtab.Invalidf("message of %d bytes: its checksum is wrong", len(b))
	}
	m := &message{kind: body[0]}
	if m.kind < kindCandidates || m.kind > kindRequest {
		return nil, trimtab.Invalidf("message of form %d, kind %d", m.kind>>4, m.kind&15)
	}
	rest, err := m.readList(body[1:])
	if err == nil && m.kind != kindRequest {
		m.version, rest, err = readNumber(rest)
		if err == nil {
			m.candidates, rest, err = readVector(rest, m.list.n)
		}
	}
	if err == nil && m.kind == kindFull {
		rest, err = m.readNames(rest)
	}
	if err == nil && len(rest) > 0 {
		err = trimtab.Invalidf("%d bytes behind the end", len(rest))
	}
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return m, nil
}

func (m *message) readList(b []byte) (rest []byte, err error) {
	var n uint64
	if m.list.life, b, err = readNumber(b); err != nil {
		return nil, err
	}
	if m.list.version, b, err = readNumber(b); err != nil {
		return nil, err
	}
	if len(b) < 8 {
		return nil, trimtab.Invalidf("list: it ends too early")
	}
	m.list.digest, b = binary.LittleEndian.Uint64(b), b[8:]
	if n, b, err = readNumber(b); err != nil {
		return nil, err
	}
	if n > MaxMachines {
		return nil, trimtab.Invalidf("list of %d machines: want at most %d", n, MaxMachines)
	}
	m.list.n = int(n)
	return b, nil
}

// readNames reads the names, which share one copy of the bytes.
func (m *message) readNames(b []byte) (rest []byte, err error) {
	if 2*m.list.n > len(b) {
		return nil, trimtab.Invalidf("%d names in %d bytes", m.list.n, len(b))
	}
	text := string(b)
	m.ids = make([]string, m.list.n)
	for i := range m.ids {
		if text == "" || text[0] == 0 || text[0] > MaxName || len(text) <= int(text[0]) {
			return nil, trimtab.Invalidf("name %d of %d: it ends too early or has no length", i, m.list.n)
		}
		m.ids[i], text = text[1:1+text[0]], text[1+text[0]:]
	}
	if digest(m.ids) != m.list.digest {
		return nil, trimtab.Invalidf("%d names: they are not those of the digest", m.list.n)
	}
	return b[len(b)-len(text):], nil
}

// String describes it for people.
func (m *message) String() string {
	kind := map[byte]string{kindCandidates: "candidates", kindFull: "full", kindRequest: "request"}[m.kind]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: life %d, ver_m %d (%d machines)", kind, m.list.life, m.list.version, m.list.n)
	if m.kind != kindRequest {
		fmt.Fprintf(&b, ", ver_c %d (%d candidates)", m.version, len(m.candidates))
	}
	return b.String()
}
