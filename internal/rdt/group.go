package rdt

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
)

// Prefix begins the names of the groups that trimtab makes; no other group is ever changed.
const Prefix = "trimtab-"

// Group returns the name of the resctrl group for a control group: from its path and its inode,
// so that a new group at the same path gets another name.
func Group(place string, id uint64) string {
	return Prefix + HashOf(place) + "-" + strconv.FormatUint(id, 16)
}

// HashOf returns the part of a group's name that stands for the path.
func HashOf(place string) string {
	sum := sha256.Sum256([]byte(place))
	return hex.EncodeToString(sum[:8])
}

// Place returns the path of a control group with the links in root resolved, whether it exists or
// not.
func Place(root, path string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return filepath.Join(root, path)
}
