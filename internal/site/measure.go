package site

import (
	"path/filepath"

	"github.com/trimtab/trimtab/actuator"
)

// rootsOf returns where what measureOf measures is, by resource, without links: two
// pools that have one group know it by one name.
func rootsOf(kinds []actuator.Kind, all []knobConfig) map[string]string {
	roots := map[string]string{}
	for _, d := range all {
		if kind, err := kindOf(kinds, d.kind); err != nil || kind.Measure == nil {
			continue
		}
		root, err := filepath.EvalSymlinks(d.at.Root)
		if err != nil {
			root = d.at.Root // it is not there yet
		}
		if root, err = filepath.Abs(root); err != nil {
			continue
		}
		for _, t := range d.like {
			roots[t.Resource] = root
		}
	}
	return roots
}
