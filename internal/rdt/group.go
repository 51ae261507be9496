package rdt

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
)

// Prefix is that of the groups that trimtab makes; no other is ever changed.
const Prefix = "trimtab-"

// Group names the group of a control group: by its place and its number, so that one
// that comes again under its name has another.
func Group(place string, id uint64) string {
	return Prefix + HashOf(place) + "-" + strconv.FormatUint(id, 16)
}

// HashOf is the part of a group's name that tells the place.
func HashOf(place string) string {
	sum := sha256.Sum256([]byte(place))
	return hex.EncodeToString(sum[:8])
}

// Place is the directory of a control group, without links in the root, whether it is
// there or not.
func Place(root, path string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return filepath.Join(root, path)
}
