package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/sim/sizing"
)

// draftLeast is the least memory that a draft proposes, in bytes.
const draftLeast = 64 << 20

// memory proposes bounds of the memory limit of a control group, as a key of its knob, and says why. It
// proposes none where the pool shares memory, or where the group's memory cannot be read.
func (d *draft) memory(group string) (key, why string) {
	if group == "" || d.given.Config.Pool.Memory > 0 {
		return "", ""
	}
	var now, peak, limit float64
	for _, dir := range []string{filepath.Join(d.root, group), filepath.Join(filepath.Dir(d.root), "memory", group)} {
		if now = amountIn(dir, "memory.current", "memory.usage_in_bytes"); now > 0 {
			peak = max(now, amountIn(dir, "memory.peak", "memory.max_usage_in_bytes"))
			limit = amountIn(dir, "memory.max", "memory.limit_in_bytes")
			break
		}
	}
	if now == 0 {
		return "", ""
	}
	most, of := limit, "the limit that it has"
	if has, err := hostfs.Memory(d.root); limit == 0 || err == nil && limit > has || limit > draftMost {
		most, of = 2*peak, "twice that, since it has no limit"
	}
	mib := func(v float64) float64 { return math.Ceil(v / (1 << 20)) }
	least := math.Max(draftLeast, now/2)
	return fmt.Sprintf(", memory: {min: %.0fMiB, max: %.0fMiB, margin: %v}", math.Min(mib(least), mib(most)), mib(most), sizing.Margin),
		fmt.Sprintf("; memory: %.0fMiB now and %.0fMiB at most, with page cache; max is %s, min half of what it uses now", mib(now), mib(peak), of)
}

// draftMost is above the memory of any host, in bytes: a larger limit is none.
const draftMost = 1 << 50

// amountIn reads a number of bytes from the first file that has one; 0: none has.
func amountIn(dir string, names ...string) float64 {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if v, bad := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && bad == nil && v > 0 && v < 1e19 {
			return v
		}
	}
	return 0
}
