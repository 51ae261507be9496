package rulefile

import "github.com/trimtab/trimtab/internal/hint"

// nearest returns the candidate that takes the fewest edits from word, at most
// a quarter of its length, or "".
func nearest(word string, candidates []string) string {
	best, least := "", 0
	if len(word) > 100 {
		return ""
	}
	for _, c := range candidates {
		if d := hint.Edits(word, c); d <= max(1, len(c)/4) && (best == "" || d < least) {
			best, least = c, d
		}
	}
	return best
}
