package rdt

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"

	"github.com/trimtab/trimtab"
)

// NoLimitMBps is the value for no limit of the memory bandwidth controller in software (mount
// option mba_MBps).
const NoLimitMBps = math.MaxUint32

// Cache describes how a host's last-level caches can be divided.
type Cache struct {
	// Names are the resources of the schemata: L3, or L3CODE and L3DATA where the tree
	// is mounted with cdp.
	Names []string
	// Mask has a bit for each way, from bit 0 on; Shareable those that devices use, too.
	Mask, Shareable uint64
	// Devices are the ways that devices fill by io_alloc, of any cache; 0: it is off.
	Devices uint64
	// MinBits is the least number of ways of a group.
	MinBits int
	// CLOSIDs is the largest number of groups, including the default one.
	CLOSIDs int
}

// Ways returns the number of ways of a cache.
func (c *Cache) Ways() int { return bits.OnesCount64(c.Mask) }

// Bandwidth describes how memory bandwidth can be limited.
type Bandwidth struct {
	// MBps says that values are in MiB/s, which a controller in the kernel enforces; otherwise they
	// are percentages.
	MBps bool
	// Min and Gran are the least percentage and its steps.
	Min, Gran float64
	// Bits is the number of bits of a fraction that the CPU stores (Arm MPAM, Linux 7.1): a
	// percentage is rounded to the nearest k/2^Bits; 0: steps are whole percents.
	Bits    int
	CLOSIDs int
}

// Kept returns the percentage that reads back after a write:
//
//	round(100 · k / 2^Bits) with k = max(1, round(percent · 2^Bits / 100))
func (b *Bandwidth) Kept(percent float64) float64 {
	if b.Bits == 0 {
		return percent
	}
	all := math.Exp2(float64(b.Bits))
	return math.Round(100 * max(1, math.Round(percent*all/100)) / all)
}

// Asked returns what to write for a percentage to read back: the kernel rounds up to steps of
// Gran before the CPU rounds to its own, so that 40, not 41, gives 41 with 6 bits.
func (b *Bandwidth) Asked(kept float64) float64 {
	if b.Bits == 0 || kept >= 100 {
		return kept
	}
	best := 100.0
	for percent := b.Gran; percent < 100; percent += b.Gran {
		if math.Abs(b.Kept(percent)-kept) < math.Abs(b.Kept(best)-kept) {
			best = percent
		}
	}
	return best
}

// bitsOf returns how many bits of a fraction the CPU keeps, by the granularity that the kernel
// reports: 100/2^bits, rounded up. With fewer than 3 or more than 6 bits it is whole percents.
func bitsOf(gran int) int {
	for bits := 3; bits <= 6; bits++ {
		if gran == (100+1<<bits-1)>>bits {
			return bits
		}
	}
	return 0
}

// Name is the resource of the schemata.
const Name = "MB"

// CacheOf reads how the last-level caches can be divided. The error is trimtab.ErrUnsupported if
// the CPU, or the kernel, cannot divide them.
func CacheOf(f Files) (*Cache, error) {
	c := &Cache{}
	for _, names := range [][]string{{"L3"}, {"L3CODE", "L3DATA"}} {
		text, err := f.Read("info/" + names[0] + "/cbm_mask")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			c.Mask, err = ParseMask(text)
		}
		if err != nil {
			return nil, fmt.Errorf("read what the cache has: %w", err)
		}
		c.Names = names
	}
	if c.Names == nil {
		return nil, fmt.Errorf("the CPU has no cache allocation for L3 (CAT, flag cat_l3), or the kernel was told rdt=!l3cat: %w", trimtab.ErrUnsupported)
	}
	if c.Mask == 0 || c.Mask&(c.Mask+1) != 0 {
		return nil, fmt.Errorf("cbm_mask %x: want ways from bit 0 on: %w", c.Mask, trimtab.ErrUnsupported)
	}
	dir := "info/" + c.Names[0] + "/"
	shareable, err := f.Read(dir + "shareable_bits")
	if err == nil { // the kernel has it since 4.13
		c.Shareable, err = ParseMask(shareable)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read what devices use of the cache: %w", err)
	}
	if c.MinBits, err = count(f, dir+"min_cbm_bits"); err == nil {
		c.CLOSIDs, err = count(f, dir+"num_closids")
	}
	if err != nil {
		return nil, err
	}
	if c.Devices, err = devices(f, dir); err != nil {
		return nil, err
	}
	c.MinBits = max(1, min(c.MinBits, c.Ways()))
	return c, nil
}

// devices reads io_alloc and its masks, "0=ff0;1=ff0". Most CPUs and kernels have none. All ways,
// which is the default, are shared with everything.
func devices(f Files, dir string) (all uint64, err error) {
	state, err := f.Read(dir + "io_alloc")
	if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(state) != "enabled" {
		return 0, nil
	}
	var text string
	if err == nil {
		text, err = f.Read(dir + "io_alloc_cbm")
	}
	if err != nil {
		return 0, fmt.Errorf("read the ways of io_alloc: %w", err)
	}
	full, err := f.Read(dir + "cbm_mask")
	if err != nil {
		return 0, fmt.Errorf("read the ways of io_alloc: %w", err)
	}
	most, err := ParseMask(full)
	for part := range strings.SplitSeq(strings.TrimSpace(text), ";") {
		_, mask, _ := strings.Cut(part, "=")
		v, bad := ParseMask(mask)
		if err = errors.Join(err, bad); v != most {
			all |= v
		}
	}
	if err != nil {
		return 0, fmt.Errorf("read io_alloc_cbm %.60q: %w", text, err)
	}
	return all, nil
}

// BandwidthOf reads how memory bandwidth can be limited. The error is
// trimtab.ErrUnsupported where it cannot.
func BandwidthOf(f Files) (*Bandwidth, error) {
	least, err := count(f, "info/MB/min_bandwidth")
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the CPU has no memory bandwidth allocation (MBA, flag mba), or the kernel was told rdt=!mba: %w", trimtab.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	gran, err := count(f, "info/MB/bandwidth_gran")
	if err != nil {
		return nil, err
	}
	b := &Bandwidth{Min: float64(least), Gran: float64(max(1, gran))}
	if b.CLOSIDs, err = count(f, "info/MB/num_closids"); err != nil {
		return nil, err
	}
	if b.MBps, err = inMBps(f); err != nil {
		return nil, err
	}
	if !b.MBps {
		b.Bits = bitsOf(gran)
	}
	percents := least <= 100 && gran <= 100
	if least < 1 && percents { // AMD's, or Arm's with more than 7 bits
		b.Min = 1
		if percents, err = atMostAll(f); err != nil {
			return nil, err
		}
	}
	if !b.MBps && !percents {
		return nil, fmt.Errorf("memory bandwidth is counted in eighths of GB/s here (AMD), which trimtab does not turn: %w", trimtab.ErrUnsupported)
	}
	return b, nil
}

// defaultGroup reads the values of the default group.
func defaultGroup(f Files) (Schemata, error) {
	text, err := f.Read("schemata")
	if err != nil {
		return nil, fmt.Errorf("read the default group: %w", err)
	}
	return ParseSchemata(text)
}

// atMostAll reports whether the default group's values can be percentages.
func atMostAll(f Files) (bool, error) {
	s, err := defaultGroup(f)
	if err != nil {
		return false, err
	}
	line := s.Line(Name)
	if line == nil {
		return false, nil
	}
	for _, d := range line.Domains {
		if d.Value > 100 {
			return false, nil
		}
	}
	return true, nil
}

// inMBps reports whether the tree was mounted with mba_MBps: newer kernels have a file for it,
// older ones show it only by the limit of the default group.
func inMBps(f Files) (bool, error) {
	if _, err := f.Read("mba_MBps_event"); err == nil {
		return true, nil
	}
	s, err := defaultGroup(f)
	if err != nil {
		return false, err
	}
	v, alike := s.Line(Name).Alike()
	return alike && v == NoLimitMBps, nil
}

func count(f Files, name string) (int, error) {
	text, err := f.Read(name)
	if err != nil {
		return 0, err
	}
	n, err := ParseCount(text)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return int(n), nil
}

// Monitors lists the events that the tree has for each group; none if it has no monitors.
func Monitors(f Files) ([]string, error) {
	text, err := f.Read("info/L3_MON/mon_features")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read monitors: %w", err)
	}
	return strings.Fields(text), nil
}
