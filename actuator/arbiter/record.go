package arbiter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Claimant identifies a claimant.
type Claimant struct {
	// Journal is the directory of its journal, which identifies it.
	Journal string `json:"journal"`
	// Pool and PID are shown to people.
	Pool string `json:"pool"`
	PID  int    `json:"pid"`
	// Boot identifies the boot of the host: claims of an earlier boot are invalid.
	Boot string `json:"boot"`
	// Group is the control group, as an absolute path, of the processes for which it claims: when
	// it is dead, its claim ends with the last of them. "": it claims for limits, which are restored
	// from its journal.
	Group string `json:"group,omitempty"`
}

// empty reports whether a claimant with a group has no process in it. One that cannot be read
// counts as not empty.
func (c *Claimant) empty() bool {
	if c.Group == "" {
		return false
	}
	root, err := hostfs.OpenRoot(filepath.Dir(c.Group))
	if err != nil {
		return false
	}
	defer root.Close()
	populated := false
	err = root.Walk(filepath.Base(c.Group), func(dir string) error {
		text, err := root.Read(path.Join(dir, "cgroup.procs"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
			return nil // the group was removed meanwhile
		}
		populated = populated || err != nil || text != ""
		return nil
	})
	return !populated && (err == nil || errors.Is(err, os.ErrNotExist))
}

// record is the content of a claimant's file.
type record struct {
	Claimant
	// Claims are by resource.
	Claims map[string]Claim `json:"claims"`
}

// The format of a claimant's file: the checksum of the rest, in hexadecimal, on the first line,
// then JSON, then blanks up to fileSize, so that a change of the claim works on a full disk.
const (
	fileSize = 4 << 10
	// maxFile is the longest file that is read, in bytes.
	maxFile = 64 << 10
	// sumLength is the length of the first line.
	sumLength = 9
)

// errEmpty is the error of a file that was created and not yet written.
var errEmpty = errors.New("empty")

func (r *record) encode() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode claim: %w", err)
	}
	b := append(fmt.Appendf(nil, "%08x\n", checksum(body)), body...)
	if len(b) > maxFile {
		return nil, trimtab.Invalidf("claim of %d bytes, limit %d", len(b), maxFile)
	}
	if more := fileSize - len(b); more > 0 {
		b = append(b, bytes.Repeat([]byte(" "), more)...)
	}
	return b, nil
}

func decode(b []byte) (*record, error) {
	if len(b) == 0 {
		return nil, errEmpty
	}
	if len(b) < sumLength {
		return nil, trimtab.Invalidf("claim of %d bytes", len(b))
	}
	var sum uint32
	body := bytes.TrimRight(b[sumLength:], " ")
	if _, err := fmt.Sscanf(string(b[:sumLength]), "%08x\n", &sum); err != nil || sum != checksum(body) {
		return nil, trimtab.Invalidf("claim whose checksum is not %.8q", b)
	}
	var r record
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("decode claim: %w: %w", err, trimtab.ErrInvalid)
	}
	if len(r.Claims) > trimtab.MaxResources {
		return nil, trimtab.Invalidf("claim of %d resources, limit %d", len(r.Claims), trimtab.MaxResources)
	}
	for resource, c := range r.Claims {
		if err := c.validate(); err != nil {
			return nil, fmt.Errorf("%.60s: %w", resource, err)
		}
	}
	return &r, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// readRecord reads a claimant's file, whatever its type and content.
func readRecord(path string) (*record, error) {
	// Non-blocking, so that a pipe in its place cannot hang the reader.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read claim: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = trimtab.Invalidf("not a regular file")
	}
	var b []byte
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	if err == nil && len(b) > maxFile {
		err = trimtab.Invalidf("more than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read claim: %w", err)
	}
	return decode(b)
}
