package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// Interfaces is the kernel's directory of network interfaces.
const Interfaces = "/sys/class/net"

// Reading is the kernel's counters of one interface at one time.
type Reading struct {
	// At is the time since the host booted.
	At time.Duration
	// Bytes is the kernel's counter of bytes sent.
	Bytes uint64
	// Bandwidth is in bytes per second; 0 if the interface reports no speed.
	Bandwidth float64
}

// Read reads one interface below dir, or below Interfaces if dir is empty.
func Read(dir, name string) (Reading, error) {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return Reading{}, trimtab.Invalidf("interface %.40q: want the name of one", name)
	}
	dir = cmp.Or(dir, Interfaces)
	r := Reading{At: hostfs.BootTime()}
	text, err := os.ReadFile(filepath.Join(dir, name, "statistics", "tx_bytes"))
	if err == nil {
		r.Bytes, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		return Reading{}, fmt.Errorf("read interface %s: %w", name, err)
	}
	// The kernel answers EINVAL for an interface that is down.
	text, err = os.ReadFile(filepath.Join(dir, name, "speed"))
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EOPNOTSUPP) {
		return Reading{}, fmt.Errorf("read speed of interface %s: %w", name, err)
	}
	if err == nil {
		r.Bandwidth = ParseSpeed(string(text))
	}
	return r, nil
}

// ParseSpeed converts the kernel's text of a speed in Mbit/s to bytes per second. It
// returns 0 if the speed is unknown, for which the kernel writes -1.
func ParseSpeed(text string) float64 {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || v <= 0 {
		return 0
	}
	return float64(v) * 1e6 / 8
}

// Sent returns how much was sent between two readings of an interface, in bytes per
// second.
func Sent(before, after Reading) (float64, error) {
	window := after.At - before.At
	if window <= 0 || after.Bytes < before.Bytes {
		return 0, trimtab.Invalidf("from %d to %d bytes in %v: not two readings of one interface", before.Bytes, after.Bytes, window)
	}
	return float64(after.Bytes-before.Bytes) / window.Seconds(), nil
}

// Source returns the source that reads how much interfaces below dir ("": Interfaces) send; the
// settings name them. It is no error if one does not exist yet.
func Source(dir string) poll.Source {
	return poll.Source{Name: "link", About: "what network interfaces send, and could", Key: "links", Interval: 2 * time.Second,
		Quantities: []quantity.Quantity{quantity.Sent, quantity.Bandwidth},
		Open: func(c poll.Config) (poll.Reader, error) {
			return &reader{dir: dir, names: c.Settings, before: map[string]Reading{}}, nil
		}}
}

// reader keeps the last reading of each interface.
type reader struct {
	poll.Simple
	dir    string
	names  []string
	before map[string]Reading
}

// Read returns two samples of each interface; its name is their instance.
func (r *reader) Read(context.Context, []poll.Group) (all []*trimtab.Sample, _ error) {
	for _, name := range r.names {
		sent, bandwidth := poll.OfHost(quantity.Sent, name), poll.OfHost(quantity.Bandwidth, name)
		all = append(all, sent, bandwidth)
		now, err := Read(r.dir, name)
		if err != nil {
			sent.Missing, bandwidth.Missing = poll.WhyMissing(err), poll.WhyMissing(err)
			delete(r.before, name)
			continue
		}
		before, known := r.before[name]
		r.before[name] = now
		if bandwidth.Value = now.Bandwidth; now.Bandwidth == 0 {
			bandwidth.Missing = "no speed told"
		}
		switch v, err := Sent(before, now); {
		case !known:
			sent.Missing = poll.First
		case err != nil:
			sent.Missing = poll.Reset
		default:
			sent.Value, sent.Window = v, trimtab.SecondsOf(now.At-before.At)
		}
	}
	return all, nil
}
