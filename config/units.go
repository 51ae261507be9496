package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes, written as 64MiB, 1GiB, 500kB or a bare number.
type Bytes int64

// Values is one text or a list of texts.
type Values []string

// byteUnits are the endings that a size may have.
func byteUnits() map[string]float64 {
	return map[string]float64{
		"": 1, "B": 1,
		"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}
}

// parseBytes reads a size; ok is false when s is not one.
func parseBytes(s string) (b Bytes, ok bool) {
	digits := strings.TrimRight(s, "kKMGTiB")
	factor, known := byteUnits()[s[len(digits):]]
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !known || err != nil || !(v >= 0) || v*factor > math.MaxInt64/2 {
		return 0, false
	}
	return Bytes(v * factor), true
}

// String prints the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b >= u.size && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}
