package prometheus

import "github.com/trimtab/trimtab"

// The bounds of the label values that peers choose, for a label and all series
// of it: what is invented beyond them is not exported, or counted as "other".
const (
	maxPools, maxResources = 64, 2 * trimtab.MaxResources
	other                  = "other"
)

// names are the label values that were admitted.
type names struct {
	pools, resources, hostPools map[string]bool
}

// admit reports whether a name is known, or may still be.
func admit[K comparable](known *map[K]bool, name K, most int) bool {
	if *known == nil {
		*known = map[K]bool{}
	}
	if !(*known)[name] && len(*known) >= most {
		return false
	}
	(*known)[name] = true
	return true
}

// pool admits a pool with an objective.
func (n *names) pool(name, objective string) bool {
	return len(objective) <= 253 && admit(&n.pools, name+"\x00"+objective, maxPools)
}

// resource is the name itself, or "other".
func (n *names) resource(name string) string {
	if len(name) > 253 || !admit(&n.resources, name, maxResources) {
		return other
	}
	return name
}

// status is s if it is a known status, else "other".
func status(s trimtab.Status) string {
	switch s {
	case trimtab.Written, trimtab.Pending, trimtab.Equal, trimtab.Recommended, trimtab.Refused, trimtab.Failed:
		return string(s)
	}
	return other
}
