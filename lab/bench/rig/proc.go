package rig

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CPUSeconds returns the user and system time that a process has used so far.
func CPUSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read what process %d used: %w", pid, err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	sum := 0.0
	for _, at := range []int{11, 12} { // utime and stime
		ticks, err := strconv.ParseFloat(fields[at], 64)
		if err != nil {
			return 0, fmt.Errorf("read what process %d used: %w", pid, err)
		}
		sum += ticks * tick.Seconds()
	}
	return sum, nil
}

// Number reads the number after a key in a file of /proc; 0 where it is not.
func Number(file, key string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), key)
	n, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64) // the kernel writes a number here
	return n
}

// Stored is how many bytes the files below a directory have.
func Stored(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil // a file that went away meanwhile holds nothing
	})
	return sum
}
